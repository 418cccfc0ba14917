import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { buildKiki } from './kiki.js'

const kiki = buildKiki()
let home: string
let count = 0

beforeEach(() => {
  count += 1
  home = join(kiki.dir, `home-${count}`)
})

afterEach(async () => {
  await kiki.run(['stop', '--home', home])
})

afterAll(() => kiki.remove())

const run = (...args: string[]) => kiki.run([...args, '--home', home])

/** The value of a command that succeeds, from a stdout that holds nothing else. */
async function json(...args: string[]) {
  const ran = await run(...args, '--json')
  expect(ran).toMatchObject({ code: 0, err: '' })
  return JSON.parse(ran.out)
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('kiki start', { timeout: 30_000 }, () => {
  it('CL-01 CL-02 is ready when it says so, and stops on demand', async () => {
    expect(await json('status')).toEqual({ running: false, home })
    const child = kiki.launch(['start', '--json', '--home', home])
    const [first] = await once(child.stdout.setEncoding('utf8'), 'data')
    const started = JSON.parse(first)
    expect(started).toEqual({
      pid: child.pid,
      home,
      owner_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      login_url: `${started.owner_url}/#login=${started.login_url.split('=')[1]}`,
      socket: join(home, 'kiki.sock'),
      mcp_url: null,
    })
    const status = await json('status')
    expect(status).toMatchObject({ running: true, pid: child.pid, home, owner_url: started.owner_url })
    expect(Object.keys(status)).toEqual(
      'running pid version home uptime_s owner_url external connections sessions operations upstreams sandbox unconfined_connections approval_consumers'.split(
        ' ',
      ),
    )
    const ended = once(child, 'exit')
    expect(await json('stop')).toEqual({ stopped: true, running: false, home, pid: child.pid })
    expect(await ended).toEqual([0, null])
    expect(await json('stop')).toEqual({ stopped: false, running: false, home })
  })

  it('CL-01 the link that it prints signs in once', async () => {
    const { login_url, owner_url } = await json('start', '--background')
    const login = () =>
      fetch(`${owner_url}/api/login`, {
        method: 'POST',
        body: JSON.stringify({ code: decodeURIComponent(login_url.split('#login=')[1]) }),
        headers: { 'content-type': 'application/json', origin: owner_url },
      })
    expect((await login()).status).toBe(200)
    expect((await login()).status).toBe(401)
  })

  it('CL-01 in the background, eight at once get one host, which outlives them', async () => {
    const all = await Promise.all(Array.from({ length: 8 }, () => json('start', '--background')))
    const [first] = all
    expect(new Set(all.map((one) => one.pid)).size).toBe(1)
    expect(all.every((one) => one.socket === first.socket && one.owner_url === first.owner_url)).toBe(true)
    expect(new Set(all.map((one) => one.login_url)).size).toBe(8)
    expect(isAlive(first.pid)).toBe(true)
    await json('stop')
    expect(isAlive(first.pid)).toBe(false)
  })

  it('CL-01 in the foreground a running host is an error that names its pid', async () => {
    const { pid } = await json('start', '--background')
    const { code, out, err } = await run('start')
    expect([code, out]).toEqual([1, ''])
    expect(err).toContain(`pid ${pid}`)
    expect(err).toContain(`kiki stop --home ${home}`)
    expect(err).toContain(`kiki open --home ${home}`)
    const again = await run('start', '--background')
    expect([again.code, again.out]).toEqual([0, expect.stringContaining(`ran already (pid ${pid})`)])
  })

  it('GU-09 CL-02 stop leaves a mark against starts by clients, and start takes it away', async () => {
    await json('start', '--background')
    await json('stop')
    expect(existsSync(join(home, 'stopped'))).toBe(true)
    await json('start', '--background')
    expect(existsSync(join(home, 'stopped'))).toBe(false)
  })

  it('CL-01 says why a host did not start, in the background as in the foreground', async () => {
    await mkdir(home)
    await writeFile(join(home, 'config.toml'), '[[permission.rules]]\ndecision = "deny"\n')
    for (const more of [[], ['--background']]) {
      const { code, err } = await run('start', ...more)
      expect(code).toBe(1)
      expect(err).toContain(`${join(home, 'config.toml')}:1:3: permission.rules[0].pattern is missing`)
    }
    expect(existsSync(join(home, 'kiki.db'))).toBe(false)
  })

  it('CL-01 a taken port is said at once, not waited for', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const address = other.address()
    const port = typeof address === 'object' && address ? String(address.port) : ''
    const begun = performance.now()
    const { code, err } = await run('start', '--background', '--port', port)
    expect(code).toBe(1)
    expect(err).toContain(port)
    expect(performance.now() - begun).toBeLessThan(10_000)
    other.close()
  })

  it('CF-03 CL-01 takes --port over the environment', async () => {
    const probe = createServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    const address = probe.address()
    const port = typeof address === 'object' && address ? address.port : 0
    await new Promise((done) => probe.close(done))
    const ran = await kiki.run(['start', '--background', '--json', '--port', String(port), '--home', home], {
      KIKI_OWNER_PORT: '1',
    })
    expect(JSON.parse(ran.out).owner_url).toBe(`http://127.0.0.1:${port}`)
  })

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('CL-01 closes in order on %s', async (signal) => {
    const child = kiki.launch(['start', '--json', '--home', home])
    await once(child.stdout, 'data')
    const ended = once(child, 'exit')
    child.kill(signal)
    expect(await ended).toEqual([0, null])
    expect(existsSync(join(home, 'host.json'))).toBe(false)
  })

  it('CL-03 open prints the link and the line that forwards the port over SSH', async () => {
    const { owner_url } = await json('start', '--background')
    const { code, out } = await kiki.run(['open', '--home', home], { SSH_CONNECTION: '192.0.2.1 5 192.0.2.2 22' })
    const { port } = new URL(owner_url)
    expect(code).toBe(0)
    expect(out).toContain(`ssh -N -L ${port}:127.0.0.1:${port} `)
    expect(out).toContain(`${owner_url}/#login=`)
  })

  it('CL-03 open hands the link to the browser in a file that only its owner can read', async () => {
    const { owner_url } = await json('start', '--background')
    const bin = join(kiki.dir, 'bin')
    await mkdir(bin, { recursive: true })
    await writeFile(
      join(bin, 'xdg-open'),
      '#!/bin/sh\nstat -c %a "$1" > "$0.mode"; cat "$1" > "$0.page"; echo "$@" > "$0.args"\n',
      { mode: 0o755 },
    )
    const env = { PATH: `${bin}:${process.env.PATH}`, DISPLAY: ':1', SSH_CONNECTION: '', SSH_CLIENT: '', SSH_TTY: '' }
    const { code, out } = await kiki.run(['open', '--home', home], env)
    expect(code).toBe(0)
    expect(out).not.toContain('login=')
    const seen = (what: string) => readFileSync(join(bin, `xdg-open.${what}`), 'utf8')
    expect(seen('mode')).toBe('600\n')
    expect(seen('page')).toContain(`${owner_url}/#login=`)
    expect(seen('args')).not.toContain('login')
  })
})
