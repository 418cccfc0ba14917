import { randomBytes, timingSafeEqual } from 'node:crypto'
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import path from 'node:path'
import { type Deferred, deferred } from '../lib/async.js'

/** Where the launcher connects a child's output to: a Unix socket in a folder that only this user may enter. */
export interface Door {
  address: string
  /** The folder that the socket is in; a launcher makes its named pipes there. */
  folder: string
  token: string
  /** The connection that becomes stream `n` (1 or 2) of a child, paused. Rejects when the door closes. */
  expect(id: number, n: 1 | 2): Promise<Socket>
  /** Nobody waits for this child's connections any more: one that still comes is destroyed. */
  forget(id: number): void
  close(): void
}

/** Unix socket paths hold 107 bytes; a longer one is reached through the open folder. */
const MAX_ADDRESS_BYTES = 100
/** `<token> <child id> <n>\n` is shorter. */
const MAX_HEADER_BYTES = 128
/** A connection that has not announced itself by then is no launcher's. */
const HEADER_MS = 5000
/** What a sandbox can hold open here at most. */
const MAX_CONNECTIONS = 500

export interface DoorEvents {
  onError(error: Error): void
  /** Gets connections of the launcher's tunnel; without it there are none. */
  onTunnel?: ((socket: Socket) => void) | undefined
}

/** @param dir made with mode 0700 where missing. */
export async function openDoor(dir: string, on: DoorEvents): Promise<Door> {
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(path.join(dir, 'run-'))
  const folderFd = openSync(folder, 'r')
  const token = randomBytes(24).toString('hex')
  const waiting = new Map<string, Deferred<Socket>>()

  const server = createServer((socket) => {
    socket.on('error', on.onError)
    readHeader(socket, (header) => {
      const [shown = '', id, n] = header.split(' ')
      const known = sameToken(shown, token)
      if (known && id === '0' && n === '3' && on.onTunnel !== undefined) return on.onTunnel(socket)
      const waiter = known ? waiting.get(`${id} ${n}`) : undefined
      if (waiter === undefined) return void socket.destroy()
      waiting.delete(`${id} ${n}`)
      waiter.resolve(socket)
    })
  })
  server.maxConnections = MAX_CONNECTIONS
  server.on('error', on.onError)
  const direct = path.join(folder, 's')
  const short = Buffer.byteLength(direct) <= MAX_ADDRESS_BYTES
  const address = short ? direct : `/proc/${process.pid}/fd/${folderFd}/s`
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ path: address }, resolve)
  })
  // A closed door keeps nobody waiting, and an idle one keeps no process alive.
  server.unref()

  return {
    address,
    folder,
    token,
    expect(id, n) {
      const waiter = deferred<Socket>()
      waiting.set(`${id} ${n}`, waiter)
      return waiter.promise
    },
    forget(id) {
      for (const n of [1, 2]) waiting.delete(`${id} ${n}`)
    },
    close() {
      for (const waiter of waiting.values()) waiter.reject(new Error('The door was closed.'))
      waiting.clear()
      server.close()
      closeSync(folderFd)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function readHeader(socket: Socket, onHeader: (header: string) => void): void {
  let seen = Buffer.alloc(0)
  const late = setTimeout(() => socket.destroy(), HEADER_MS)
  socket.once('close', () => clearTimeout(late))
  const onData = (chunk: Buffer): void => {
    seen = Buffer.concat([seen, chunk])
    const end = seen.indexOf(0x0a)
    if (end < 0 && seen.length <= MAX_HEADER_BYTES) return
    clearTimeout(late)
    socket.pause()
    socket.off('data', onData)
    if (end < 0 || end > MAX_HEADER_BYTES) return void socket.destroy()
    const rest = seen.subarray(end + 1)
    if (rest.length > 0) socket.unshift(rest)
    onHeader(seen.toString('latin1', 0, end))
  }
  socket.on('data', onData)
}

function sameToken(shown: string, token: string): boolean {
  const [a, b] = [Buffer.from(shown), Buffer.from(token)]
  return a.length === b.length && timingSafeEqual(a, b)
}
