import { type ChildProcess, execFile, spawn } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { deferred, settledWithin } from '../lib/async.js'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'
import { createSplitter } from '../lib/json-lines.js'
import type { Log } from '../lib/log.js'
import { type Door, openDoor } from './door.js'
import { launcherLost, stopping } from './failures.js'
import { type ChildMessage, type FromLauncher, MESSAGE, type ToLauncher } from './protocol.js'

/** The host's end of one running launcher. */
export interface Link {
  door: Door
  /** Who hears the launcher's messages about a child, by its id. */
  children: Map<number, { onMessage(message: ChildMessage): void; onLost(why: KikiError): void }>
  send(message: ToLauncher): void
  /** Its children live in a world of their own (a sandbox): their numbers say nothing here, and its end is theirs. */
  confined: boolean
  /** The port on the launcher's loopback, where `onTunnel` is given. */
  tunnel: Promise<number>
  /** Ends the launcher at once, and with a sandbox everything in it. Each child is told that it was ended, and why. */
  kill(why: string): void
  /** Of the launcher, or of what confines it; undefined where it could not be started. */
  pid: number | undefined
  /** Settles when the launcher is gone and every child was told. */
  lost: Promise<void>
  /** Ends every child and the launcher, within 2 s. */
  close(): Promise<void>
}

export interface LinkOptions {
  /** For the door's folder. */
  dir: string
  log: Log
  confined: boolean
  /** Gets what programs within connect to: the launcher listens for it where they are. */
  onTunnel?: ((socket: Socket) => void) | undefined
  /** How the launcher is started, and by which path it reaches the door (from within a sandbox by another). */
  start(door: Pick<Door, 'folder' | 'address'>): LauncherStart
}

export interface LauncherStart {
  argv: readonly [string, ...string[]]
  env: Record<string, string>
  address: string
  /** Ends what the launcher may leave, such as a container: run whenever it has gone. */
  stop?: readonly [string, ...string[]]
}

/** Milliseconds that `stop` may take. */
const STOP_MS = 10_000
/** After this a launcher that was asked to end is killed; the host ends the children itself then. */
const CLOSE_MS = 1500
/** Characters of what a launcher, or its sandbox, said last: they tell why it ended. */
const LAST_WORDS = 300
/** The launcher's messages are short; a longer line is a bug. */
const MAX_MESSAGE_BYTES = 64 * 1024

/** Starts a launcher. It ends its children and itself when this process goes away, however that happens. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const { log } = options
  const door = await openDoor(options.dir, {
    onError: (error) => log.debug({ error: error.message }, 'a child connection failed'),
    onTunnel: options.onTunnel,
  })
  const { argv, env, address, stop } = options.start(door)
  const launcher = spawn(argv[0], argv.slice(1), {
    // Not the owner's folder: a process that stands in it would keep it from being unmounted.
    cwd: '/',
    env,
    // A session of its own: Ctrl-C in the host's terminal is the host's to handle.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const children: Link['children'] = new Map()
  const lost = deferred<void>()
  const tunnel = deferred<number>()
  tunnel.promise.catch(() => undefined)
  let closing = false
  let killed: string | undefined

  const tell = (message: FromLauncher): void => {
    // While it closes, a child's end says nothing about the child: all are told below.
    if (message.type === 'tunnel') tunnel.resolve(message.port)
    else if (!closing) children.get(message.id)?.onMessage(message)
  }
  let ended = false
  const end = (detail: string): void => {
    if (ended) return
    ended = true
    door.close()
    const why = killed !== undefined ? endedWithSandbox(killed) : closing ? stopping() : launcherLost(detail)
    if (!closing && killed === undefined)
      log.error({ detail, children: children.size }, 'the launcher ended unexpectedly')
    for (const child of children.values()) child.onLost(why)
    children.clear()
    tunnel.reject(why)
    if (stop === undefined) lost.resolve()
    else runStop(stop, env, log, lost.resolve)
  }
  const kill = (why: string): void => {
    if (ended) return
    killed ??= why
    endGroup(launcher)
  }
  listen(launcher, { tell, end, kill, log })
  const { stdin } = launcher
  const send = (message: ToLauncher): void => void stdin.write(`${JSON.stringify(message)}\n`)
  send({ type: 'hello', address, token: door.token })
  if (options.onTunnel !== undefined) send({ type: 'tunnel' })
  return {
    door,
    children,
    send,
    pid: launcher.pid,
    confined: options.confined,
    tunnel: tunnel.promise,
    kill,
    lost: lost.promise,
    async close() {
      closing = true
      stdin.end()
      if (!(await settledWithin(lost.promise, CLOSE_MS))) endGroup(launcher)
      await lost.promise
    },
  }
}

/** That it failed is told, and keeps nobody waiting. */
function runStop(
  [file, ...words]: readonly [string, ...string[]],
  env: LauncherStart['env'],
  log: Log,
  over: () => void,
) {
  execFile(file, words, { cwd: '/', env, timeout: STOP_MS, killSignal: 'SIGKILL' }, (error, _, stderr) => {
    if (error !== null) log.error({ error: messageOf(error), stderr }, 'what a sandbox left could not be ended')
    over()
  })
}

function listen(
  launcher: ChildProcess & { stdin: Writable; stdout: Readable; stderr: Readable },
  on: { tell(message: FromLauncher): void; end(detail: string): void; kill(why: string): void; log: Log },
): void {
  const splitter = createSplitter({
    separator: 0x0a,
    maxBytes: MAX_MESSAGE_BYTES,
    onPiece(line) {
      const message = readMessage(line.toString('utf8'))
      if (message !== undefined) on.tell(message)
      else on.kill('its launcher said what no launcher says')
    },
    onTooLong: () => on.kill('its launcher said more than fits one message'),
  })
  launcher.stdout.on('data', (chunk: Buffer) => splitter.push(chunk))
  let last = ''
  launcher.stderr.on('data', (chunk: Buffer) => {
    last = `${last}${chunk.toString('utf8')}`.slice(-LAST_WORDS)
    on.log.error({ stderr: chunk.toString('utf8', 0, 2000) }, 'the launcher said')
  })
  // A write to a launcher that has just died fails here; its end is told below.
  launcher.stdin.on('error', (error) => on.log.debug({ error: messageOf(error) }, 'a message to the launcher failed'))
  launcher.once('error', (error) => on.end(messageOf(error)))
  launcher.once('close', (code, signal) =>
    on.end(`${signal ?? `exit code ${code}`}${last.trim() === '' ? '' : `: ${last.trim()}`}`),
  )
}

/** A sandbox's commands can write where its launcher does: what is no message must not reach further than here. */
function readMessage(line: string): FromLauncher | undefined {
  const parsed = MESSAGE.safeParse(parse(line))
  return parsed.success ? parsed.data : undefined
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    // It is told as no message.
    return undefined
  }
}

/** With a sandbox, what confines the launcher is ended, and by that everything in it. */
function endGroup(launcher: ChildProcess): void {
  if (launcher.pid === undefined || launcher.exitCode !== null || launcher.signalCode !== null) return
  try {
    process.kill(-launcher.pid, 'SIGKILL')
  } catch (error) {
    if (systemCode(error) !== 'ESRCH') throw error
  }
}

function endedWithSandbox(why: string): KikiError {
  return new KikiError('cancelled', `It was ended together with everything beside it: ${why}.`, {
    hint: 'Call again to repeat it; inspect the target first.',
  })
}
