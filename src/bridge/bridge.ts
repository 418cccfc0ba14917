import type { Socket } from 'node:net'
import { resolve as absolute } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { KikiError, messageOf } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import { type BridgeOptions, parseArguments } from './arguments.js'
import { findHost } from './find-host.js'
import { fromClient, MAX_LINE_BYTES, tooLongFromClient } from './from-client.js'
import { fromHost } from './from-host.js'
import type { HostStream } from './host-stream.js'
import { createLineSplitter } from './lines.js'
import { onConnected, onDisconnected } from './opening.js'
import { createRelay, giveUp, owesAnswer, type Relay } from './relay.js'

interface Streams {
  stdin: Readable
  stdout: Writable
  stderr: Writable
}

interface Bridge extends Streams {
  options: BridgeOptions
  id: string
  relay: Relay
  socket: Socket | undefined
  inputEnded: boolean
  /** Set by `finish`: no more reconnecting, no more complaints. */
  finished: boolean
  /** Ends the bridge with this exit code; later calls do nothing. */
  finish(code: number): void
  fail(error: unknown): void
}

/** After an owner's `kiki stop`, or with `--no-start`, a host may come back for this long before the bridge ends. */
const PATIENCE_MS = 10_000
/** From the end of standard input to the end of the bridge at most 2 s (GU-23): for answers, then for the last bytes. */
const LAST_ANSWERS_MS = 1200
const LAST_BYTES_MS = 300
/** Lines of a host are its own results, which it cuts long before this. */
const MAX_HOST_LINE_BYTES = 64 * 1024 * 1024
/** Where reading from the client stops; two lines of the greatest length fit. */
const MAX_WAITING_BYTES = 2 * MAX_LINE_BYTES
const MAX_UNREAD_BYTES = 1024 * 1024
/** More streams than this within a minute means that the host cannot live with this connection. */
const MAX_STREAMS_A_MINUTE = 6

/**
 * The stdio bridge (CL-10): copies newline-delimited JSON-RPC between standard streams and the host's socket, and reconnects by
 * itself. Standard output is protocol only; whatever else there is to say is one line on standard error.
 * @returns the exit code: 0 when the client ended it, 1 when it cannot go on, 2 for wrong arguments.
 */
export async function runBridge(argv: readonly string[], streams: Streams = process): Promise<number> {
  let options: BridgeOptions
  try {
    options = parseArguments(argv)
  } catch (error) {
    complain(streams, error)
    return 2
  }
  const { stdin, stdout, stderr } = streams
  return new Promise((resolve) => {
    const id = newId('bridge')
    const relay = createRelay(
      {
        toClient: (line) => void stdout.write(line),
        toHost: (line) => void bridge.socket?.write(line),
        note: (text) => void stderr.write(`kiki mcp: ${oneLine(text)}\n`),
        fail: (error) => bridge.fail(error),
      },
      `${id}:`,
      absolute(options.home),
    )
    const bridge: Bridge = {
      ...{ stdin, stdout, stderr, options, id, relay },
      socket: undefined,
      inputEnded: false,
      finished: false,
      finish(code) {
        if (bridge.finished) return
        bridge.finished = true
        flush(bridge).then(() => resolve(code))
      },
      fail(error) {
        if (bridge.finished) return
        giveUp(relay, withHint(error))
        complain(streams, error)
        bridge.finish(1)
      },
    }
    readClient(bridge)
    keepConnected(bridge).catch(bridge.fail)
  })
}

function readClient(bridge: Bridge): void {
  const { stdin, stdout, relay } = bridge
  const lines = createLineSplitter(MAX_LINE_BYTES, {
    line: (line) => fromClient(relay, line),
    tooLong: (head, tail) => tooLongFromClient(relay, head, tail),
  })
  stdin.on('data', (chunk: Buffer) => {
    together(bridge, () => lines.push(chunk))
    afterTraffic(bridge)
  })
  const ended = () => {
    if (bridge.inputEnded) return
    bridge.inputEnded = true
    setTimeout(() => bridge.finish(0), LAST_ANSWERS_MS)
    afterTraffic(bridge)
  }
  stdin.on('end', ended).on('close', ended).on('error', ended)
  stdout.on('drain', () => afterTraffic(bridge))
  // Nobody reads any more (EPIPE): there is nothing left to do and nobody to tell.
  stdout.on('error', () => bridge.finish(0))
}

async function keepConnected(bridge: Bridge): Promise<void> {
  const starts: number[] = []
  while (!bridge.finished) {
    const stream = await findHost(bridge.options, bridge.id, starts.length === 0 ? 0 : PATIENCE_MS)
    starts.push(performance.now())
    const before = starts.at(-MAX_STREAMS_A_MINUTE)
    if (before !== undefined && starts.length > MAX_STREAMS_A_MINUTE && performance.now() - before < 60_000) {
      stream.socket.destroy()
      throw new KikiError('upstream_unavailable', "Kiki's host ended this connection again and again.", {
        hint: `Look into ${absolute(bridge.options.home, 'logs')}, then restart this MCP server in your application.`,
      })
    }
    await passLines(bridge, stream)
  }
}

/** Resolves when the stream has ended. */
function passLines(bridge: Bridge, { socket, head }: HostStream): Promise<void> {
  const { relay } = bridge
  const lines = createLineSplitter(MAX_HOST_LINE_BYTES, {
    line: (line) => fromHost(relay, line),
    tooLong: () => {
      relay.out.note(`Kiki's host sent a line of more than ${MAX_HOST_LINE_BYTES} bytes; reconnecting`)
      socket.destroy()
    },
  })
  return new Promise((resolve) => {
    bridge.socket = socket
    // `close` follows, and says all there is to say: the host went away.
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.on('close', () => {
      bridge.socket = undefined
      onDisconnected(relay)
      afterTraffic(bridge)
      resolve()
    })
    socket.on('drain', () => afterTraffic(bridge))
    const onData = (chunk: Buffer) => {
      together(bridge, () => lines.push(chunk))
      afterTraffic(bridge)
    }
    together(bridge, () => onConnected(relay))
    if (head.length > 0) onData(head)
    socket.on('data', onData)
    afterTraffic(bridge)
  })
}

/** Writes of one chunk leave in one system call each way. */
function together(bridge: Bridge, work: () => void): void {
  const { stdout, socket } = bridge
  stdout.cork()
  socket?.cork()
  work()
  socket?.uncork()
  stdout.uncork()
}

/** Slows either side down to what the other takes, so that nothing piles up here; and ends the bridge when all is said. */
function afterTraffic(bridge: Bridge): void {
  const { stdin, stdout, socket, relay } = bridge
  const holdClient =
    socket?.writableNeedDrain || stdout.writableLength > MAX_UNREAD_BYTES || relay.waitingBytes > MAX_WAITING_BYTES
  if (holdClient) stdin.pause()
  else if (stdin.isPaused()) stdin.resume()
  if (stdout.writableNeedDrain) socket?.pause()
  else if (socket?.isPaused()) socket.resume()
  if (bridge.inputEnded && !owesAnswer(relay)) bridge.finish(0)
}

/** Gives the last bytes to both sides a moment to leave. */
async function flush({ stdout, socket }: Bridge): Promise<void> {
  const written = new Promise<void>((resolve) => stdout.write('', () => resolve()))
  const sent = socket && new Promise<void>((resolve) => socket.end(() => resolve()))
  const late = new Promise((resolve) => setTimeout(resolve, LAST_BYTES_MS))
  await Promise.race([Promise.all([written, sent]), late])
}

function complain(streams: Streams, error: unknown): void {
  streams.stderr.write(`kiki mcp: ${oneLine(withHint(error))}\n`)
}

function withHint(error: unknown): string {
  return messageOf(error) + (error instanceof KikiError && error.hint ? ` ${error.hint}` : '')
}

function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim()
}
