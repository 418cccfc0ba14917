import { type ChildProcess, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { deferred, settledWithin } from '../lib/async.js'
import { type KikiError, messageOf } from '../lib/errors.js'
import { createSplitter } from '../lib/json-lines.js'
import type { Log } from '../lib/log.js'
import { type Door, openDoor } from './door.js'
import { launcherLost, stopping } from './failures.js'
import type { FromLauncher, ToLauncher } from './protocol.js'

/** The host's end of one running launcher. */
export interface Link {
  door: Door
  /** Who hears the launcher's messages about a child, by its id. */
  children: Map<number, { onMessage(message: FromLauncher): void; onLost(why: KikiError): void }>
  send(message: ToLauncher): void
  /** Settles when the launcher is gone and every child was told. */
  lost: Promise<void>
  /** Ends every child and the launcher, within 2 s. */
  close(): Promise<void>
}

export interface LinkOptions {
  dir: string
  log: Log
  env: Record<string, string>
  launcherPath: string
}

/** After this a launcher that was asked to end is killed; the host ends the children itself then. */
const CLOSE_MS = 1500
/** The launcher's messages are short; a longer line is a bug. */
const MAX_MESSAGE_BYTES = 64 * 1024

/** Starts a launcher. It ends its children and itself when this process goes away, however that happens. */
export async function openLink(options: LinkOptions): Promise<Link> {
  const { log } = options
  const door = await openDoor(options.dir, (error) => log.debug({ error: error.message }, 'a child connection failed'))
  const launcher = spawn(process.execPath, ['--max-old-space-size=64', options.launcherPath], {
    // Not the owner's folder: a process that stands in it would keep it from being unmounted.
    cwd: '/',
    env: options.env,
    // A session of its own: Ctrl-C in the host's terminal is the host's to handle.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const children: Link['children'] = new Map()
  const lost = deferred<void>()
  let closing = false

  const tell = (message: FromLauncher): void => {
    // While it closes, a child's end says nothing about the child: all are told below.
    if (!closing) children.get(message.id)?.onMessage(message)
  }
  let ended = false
  const end = (detail: string): void => {
    if (ended) return
    ended = true
    door.close()
    const why = closing ? stopping() : launcherLost(detail)
    if (!closing) log.error({ detail, children: children.size }, 'the launcher ended unexpectedly')
    for (const child of children.values()) child.onLost(why)
    children.clear()
    lost.resolve()
  }
  listen(launcher, { tell, end, log })
  const { stdin } = launcher
  const send = (message: ToLauncher): void => void stdin.write(`${JSON.stringify(message)}\n`)
  send({ type: 'hello', address: door.address, token: door.token })
  return {
    door,
    children,
    send,
    lost: lost.promise,
    async close() {
      closing = true
      stdin.end()
      if (!(await settledWithin(lost.promise, CLOSE_MS))) launcher.kill('SIGKILL')
      await lost.promise
    },
  }
}

function listen(
  launcher: ChildProcess & { stdin: Writable; stdout: Readable; stderr: Readable },
  on: { tell(message: FromLauncher): void; end(detail: string): void; log: Log },
): void {
  const splitter = createSplitter({
    separator: 0x0a,
    maxBytes: MAX_MESSAGE_BYTES,
    onPiece: (line) => on.tell(JSON.parse(line.toString('utf8')) as FromLauncher),
    onTooLong: () => on.log.error({}, 'the launcher said more than fits one message'),
  })
  launcher.stdout.on('data', (chunk: Buffer) => splitter.push(chunk))
  launcher.stderr.on('data', (chunk: Buffer) =>
    on.log.error({ stderr: chunk.toString('utf8', 0, 2000) }, 'the launcher said'),
  )
  // A write to a launcher that has just died fails here; its end is told below.
  launcher.stdin.on('error', (error) => on.log.debug({ error: messageOf(error) }, 'a message to the launcher failed'))
  launcher.once('error', (error) => on.end(messageOf(error)))
  launcher.once('close', (code, signal) => on.end(signal === null ? `exit code ${code}` : signal))
}
