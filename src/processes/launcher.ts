/**
 * The launcher: a small program that starts every child for the host, because spawning from a large process is slow
 * (design §2). It imports only Node's own modules, keeps nothing on disk, and when the host goes away, however it goes,
 * it kills every group that it started and ends.
 */
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import type { Writable } from 'node:stream'
import { createPipes } from './pipes.js'
import type { FromLauncher, ToLauncher } from './protocol.js'
import { startCommand } from './start-command.js'
import { attach, type Place, type Reports, type Started, startPlain } from './start-plain.js'

interface Entry {
  started?: Started
  ending: boolean
}

function startLauncher(input: NodeJS.ReadStream, output: Writable): void {
  const entries = new Map<number, Entry>()
  /** By child id: pipes that are kept open until the host has them. */
  const kept = new Map<number, () => void>()
  const place: Place = { closed: false, address: '', token: '' }
  const pipes = createPipes(() => place.address)
  const say = (message: FromLauncher): void => void output.write(`${JSON.stringify(message)}\n`)

  const close = (): void => {
    place.closed = true
    for (const entry of entries.values()) entry.started?.kill()
    input.destroy()
    // Terminals and pipes that a dead host left open keep nobody here.
    process.exitCode = 0
    setImmediate(() => process.exit())
  }

  const spawn = (message: Extract<ToLauncher, { type: 'spawn' }>): void => {
    const { id } = message
    const entry: Entry = { ending: false }
    entries.set(id, entry)
    const on: Reports = {
      ended: () => entry.ending,
      say,
      keepOpen: (release) => void kept.set(id, release),
      fail(error) {
        entries.delete(id)
        say({ type: 'failed', id, ...describe(error, message.cwd) })
      },
      exit(exitCode, signal, left) {
        entries.delete(id)
        say({ type: 'exit', id, exitCode, signal, ...(left === undefined ? {} : { left }) })
      },
    }
    const starting =
      message.command === undefined ? startPlain(message, place, on) : startCommand(message, place, pipes, on)
    starting.then((started) => {
      entry.started = started
      if (place.closed) started.kill()
      else if (entry.ending) started.end()
    }, on.fail)
  }

  const opened = (id: number): void => {
    kept.get(id)?.()
    kept.delete(id)
  }

  const end = (entry: Entry): void => {
    if (entry.ending) return
    entry.ending = true
    entry.started?.end()
  }

  const handle = (message: ToLauncher): void => {
    if (message.type === 'hello') Object.assign(place, { address: message.address, token: message.token })
    else if (message.type === 'spawn') spawn(message)
    else if (message.type === 'tunnel') openTunnel(place, (port) => say({ type: 'tunnel', port }))
    else if (message.type === 'opened') opened(message.id)
    else {
      const entry = entries.get(message.id)
      if (entry === undefined) return
      if (message.type === 'go') entry.started?.go()
      else if (message.type === 'signal') entry.started?.signal(message.signal)
      else end(entry)
    }
  }

  readLines(input, (line) => handle(JSON.parse(line) as ToLauncher))
  input.once('end', close)
  input.once('error', close)
  // The host is gone; `close` runs through the end of the input, and there is nobody to tell.
  output.on('error', close)
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, close)
}

function describe(error: unknown, cwd: string): { code: string; message: string } {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN'
  const message = error instanceof Error ? error.message : String(error)
  return code === 'ENOENT' && !existsSync(cwd) ? { code: 'ENOCWD', message } : { code, message }
}

/** Hands what connects to this world's loopback to the host. */
function openTunnel(place: Place, ready: (port: number) => void): void {
  const server = createServer((socket) => {
    socket.pause()
    socket.on('error', () => undefined)
    attach(place, 0, 3).then(
      (host) => {
        host.pipe(socket).pipe(host)
        socket.once('close', () => host.destroy())
        host.once('close', () => socket.destroy())
      },
      // The door is closed: so is the way out.
      () => socket.destroy(),
    )
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    if (address !== null && typeof address === 'object') ready(address.port)
  })
}

/** Not `node:readline`: it also splits at U+2028, which JSON leaves as it is. */
function readLines(input: NodeJS.ReadStream, onLine: (line: string) => void): void {
  let parts: string[] = []
  input.setEncoding('utf8')
  input.on('data', (chunk: string) => {
    const lines = chunk.split('\n')
    parts.push(lines.shift() ?? '')
    for (const next of lines) {
      const line = parts.join('')
      parts = [next]
      onLine(line)
    }
  })
}

startLauncher(process.stdin, process.stdout)
