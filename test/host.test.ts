import { existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { type AddressInfo, connect, createServer as createSocket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { loadConfig } from '../src/config/load.js'
import { createHost, type Host } from '../src/host.js'
import { KikiError } from '../src/lib/errors.js'
import { DatabaseError } from '../src/store/failures.js'
import { callApi } from './helpers/host.js'

let base: string
let home: string
let hosts: Host[]
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'kiki-h-'))
  home = join(base, 'home')
  hosts = []
})
afterEach(async () => {
  for (const host of hosts) await host.close()
  rmSync(base, { recursive: true, force: true })
})

/** A host in this process, as a program that embeds Kiki has it. */
async function start(port = 0, dir = home): Promise<Host> {
  const flags = [{ flag: '--port', key: 'owner.port', value: String(port) }]
  const { config } = await loadConfig({ file: join(dir, 'config.toml'), env: {}, flags })
  const host = await createHost({ home: dir, config })
  hosts.push(host)
  return host
}

async function refusal(starting: Promise<unknown>): Promise<KikiError> {
  const error = await starting.then(
    () => new Error('it started'),
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(KikiError)
  return error as KikiError
}

/** What shows that a host runs, or ran and was not put away. */
function traces(): string[] {
  return ['kiki.sock', 'host.json', 'run/host.pid', 'kiki.db-wal', 'kiki.db-shm'].filter((name) =>
    existsSync(join(home, name)),
  )
}

describe('createHost', () => {
  it('GU-40 is refused where a host runs, naming home and pid, and leaves that one as it is', async () => {
    const host = await start()
    const error = await refusal(start())
    expect(error).toMatchObject({ code: 'conflict', data: { home: host.home, pid: process.pid } })
    expect(error.message).toContain(String(process.pid))
    expect(error.message).toContain(home)
    expect(await callApi(host.socket, 'GET', '/api/status')).toMatchObject({ running: true, pid: process.pid })
    await host.close()
    await start()
  })

  it('closes once, whoever asks, and gives everything free', async () => {
    const host = await start()
    expect(traces()).toContain('host.json')
    await Promise.all([host.close(), host.close()])
    await host.closed
    expect(traces()).toEqual([])
    expect(readdirSync(join(home, 'run'))).toEqual([])
    await expect(fetch(host.ownerUrl)).rejects.toThrow()
  })

  it('POST /api/stop always has its answer, then the host closes', async () => {
    for (let round = 0; round < 10; round++) {
      const host = await start()
      expect(await callApi(host.socket, 'POST', '/api/stop')).toMatchObject({ stopping: true })
      await host.closed
      expect(traces()).toEqual([])
    }
  })

  it('closes although connections hang: half a request, a request without an end, an upgrade that is being decided', async () => {
    const host = await start()
    const { port } = new URL(host.ownerUrl)
    const heads = [
      'GET /api/status HTTP/1.1\r\nHost: local',
      'POST /api/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{',
      'GET /bridge HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: kiki-bridge\r\nAuthorization: Bearer x\r\n\r\n',
    ]
    const ends = heads.flatMap((head) =>
      [connect(host.socket), connect(Number(port), '127.0.0.1')].map(
        (socket) =>
          new Promise<void>((resolve) => {
            socket.on('error', () => undefined).on('close', () => resolve())
            socket.resume().write(head)
          }),
      ),
    )
    await callApi(host.socket, 'GET', '/api/status')
    await host.close()
    await Promise.all(ends)
    expect(traces()).toEqual([])
  })

  it('a home on a path with spaces and Unicode', async () => {
    const dir = join(base, 'Zoë’s files', '家 🏠')
    const host = await start(0, dir)
    expect(await callApi(host.socket, 'GET', '/api/status')).toMatchObject({ home: dir })
    expect(JSON.parse(readFileSync(join(dir, 'host.json'), 'utf8'))).toMatchObject({ socket: host.socket })
  })
})

describe('a start that fails says why, leaves nothing behind, and the next one works', () => {
  it('a port that is taken', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = other.address() as AddressInfo
      const error = await refusal(start(port))
      expect(error).toMatchObject({ code: 'conflict', hint: expect.stringContaining('choose another --port') })
      expect(error.data).toBeUndefined()
      expect(traces()).toEqual([])
      await start()
    } finally {
      other.close()
    }
  })

  it('something that is no socket where the socket belongs is not removed', async () => {
    await (await start()).close()
    const path = join(home, 'kiki.sock')
    mkdirSync(path)
    expect((await refusal(start())).message).toContain(path)
    rmSync(path, { recursive: true })
    writeFileSync(path, 'the owner’s')
    expect((await refusal(start())).message).toContain(path)
    expect(readFileSync(path, 'utf8')).toBe('the owner’s')
    rmSync(path)
    expect(traces()).toEqual([])
    await start()
  })

  it('a socket, a host.json and a pid that a killed host has left are replaced', async () => {
    await (await start()).close()
    // Node.js removes a socket that it closes, so another name keeps this one.
    const stale = createSocket().listen(join(home, 'first.sock'))
    await new Promise((resolve) => stale.once('listening', resolve))
    linkSync(join(home, 'first.sock'), join(home, 'kiki.sock'))
    stale.close()
    writeFileSync(join(home, 'host.json'), '{"pid": 1, "socket": "/nowhere"}')
    writeFileSync(join(home, 'run', 'host.pid'), '1\n')
    const host = await start()
    expect(await callApi(host.socket, 'GET', '/api/status')).toMatchObject({ pid: process.pid })
    expect(JSON.parse(readFileSync(join(home, 'host.json'), 'utf8'))).toMatchObject({ pid: process.pid })
  })

  it('a folder where the log or the pid belongs', async () => {
    await (await start()).close()
    for (const path of ['logs/kiki.log', 'run/host.pid'].map((name) => join(home, name))) {
      rmSync(path, { force: true })
      mkdirSync(path)
      const error = await refusal(start())
      expect(error.code).toBe('conflict')
      expect(error.message).toContain(path)
      rmSync(path, { recursive: true })
      expect(traces()).toEqual([])
    }
    await start()
  })

  it('GU-43 a database that cannot be used is the reason that is told, and nothing listens', async () => {
    await (await start()).close()
    writeFileSync(join(home, 'kiki.db'), '')
    await expect(start()).rejects.toThrow(DatabaseError)
    expect(traces()).toEqual([])
  })
})
