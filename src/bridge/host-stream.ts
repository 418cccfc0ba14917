import { connect, type Socket } from 'node:net'
import { type HomePaths, homeCommand } from '../config/home.js'
import { ERROR_CODES, KikiError, systemCode } from '../lib/errors.js'
import { BrokenAnswer, exchange, type HttpAnswer } from './http-exchange.js'
import { isObject } from './message.js'

/** Nobody answers at the socket (or someone who is just starting or stopping): waiting or starting a host can help. */
export class HostAbsent extends Error {}

export interface StreamRequest {
  client: string
  session: string | undefined
  discovery: boolean
  /** Id of this bridge process, the same for all its connections. */
  bridge: string
}

export interface HostStream {
  /** Paused. */
  socket: Socket
  /** Bytes of the stream that came together with the answer. */
  head: Buffer
}

/** Whom the bridge asks. */
type Peer = Pick<HomePaths, 'dir' | 'logs'> & { socketPath: string }

/** A host answers in milliseconds; one that needs longer than this hangs. */
const ANSWER_MS = 10_000
// ENOTDIR: no folder can be where the home is to be; whoever starts a host says so.
const ABSENT = ['ENOENT', 'ENOTDIR', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']

/**
 * Opens a bridge stream: asks the host for a credential for this one connection (KI-045), then upgrades to newline-delimited JSON-RPC.
 * @throws HostAbsent when no host answers.
 * @throws KikiError the host's own refusal (unknown or revoked connection, unknown session, …), `timeout`, or `permission_denied`.
 */
export async function openHostStream(paths: HomePaths, socketPath: string, wanted: StreamRequest): Promise<HostStream> {
  const from: Peer = { ...paths, socketPath }
  const body = JSON.stringify({ client: wanted.client, bridge: wanted.bridge })
  const first = connect(socketPath)
  const granted = await ask(first, from, 'POST /api/bridge/credential', JSON_HEADERS, body)
  const { credential } = accepted(granted, first, from)
  if (typeof credential !== 'string' || !/^[\x21-\x7e]+$/.test(credential)) throw notUnderstood(first, from)
  const query = new URLSearchParams()
  if (wanted.session !== undefined) query.set('session', wanted.session)
  if (wanted.discovery) query.set('discovery', '1')
  if (!granted.keepAlive) first.destroy()
  const socket = granted.keepAlive ? first : connect(socketPath)
  const target = query.size > 0 ? `/bridge?${query}` : '/bridge'
  const answer = await ask(socket, from, `GET ${target}`, [...UPGRADE_HEADERS, `Authorization: Bearer ${credential}`])
  if (answer.status === 101) return { socket, head: answer.rest }
  accepted(answer, socket, from)
  throw notUnderstood(socket, from)
}

const JSON_HEADERS = ['Content-Type: application/json']
const UPGRADE_HEADERS = ['Connection: Upgrade', 'Upgrade: kiki-bridge']

async function ask(
  socket: Socket,
  from: Peer,
  request: string,
  headers: readonly string[],
  body = '',
): Promise<HttpAnswer> {
  const length = body ? [`Content-Length: ${Buffer.byteLength(body)}`] : []
  // This Host passes the host's allow-list (GU-62).
  const lines = [`${request} HTTP/1.1`, 'Host: localhost', ...headers, ...length, '', body]
  try {
    return await exchange(socket, lines.join('\r\n'), ANSWER_MS, () => notAnswering(from))
  } catch (error) {
    throw connectError(error, from)
  }
}

/** The JSON of a 200 answer; any other answer is thrown, and the socket with it. */
function accepted({ status, body }: HttpAnswer, socket: Socket, from: Peer): Record<string, unknown> {
  const value = parseObject(body)
  if (status === 200) return value
  socket.destroy()
  if (status === 503) throw new HostAbsent('The host is starting or stopping.')
  throw refusal(status, value.error, from)
}

function refusal(status: number, error: unknown, { dir }: Peer): KikiError {
  if (!isObject(error) || typeof error.message !== 'string') {
    return new KikiError('internal_error', `Kiki's host answered with HTTP status ${status}.`, {
      hint: `Restart the host if Kiki was updated while it ran: ${homeCommand(dir, 'stop')}, then ${homeCommand(dir, 'start')}.`,
    })
  }
  const code = ERROR_CODES.find((known) => known === error.code) ?? 'internal_error'
  return new KikiError(code, error.message, typeof error.hint === 'string' ? { hint: error.hint } : {})
}

function parseObject(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : {}
  } catch {
    // An answer that is not JSON is judged by its status.
    return {}
  }
}

function connectError(error: unknown, { socketPath, logs }: Peer): unknown {
  if (!(error instanceof Error) || error instanceof KikiError) return error
  const code = systemCode(error) ?? ''
  if (error instanceof BrokenAnswer || ABSENT.includes(code)) return new HostAbsent(error.message)
  if (code === 'EACCES' || code === 'EPERM') {
    return new KikiError('permission_denied', `This user may not open Kiki's socket ${socketPath}.`, {
      hint: 'Run the client as the user who owns this Kiki home, or give another --home.',
    })
  }
  return new KikiError('internal_error', `Kiki's socket ${socketPath} cannot be opened: ${error.message}.`, {
    hint: `Look into ${logs}.`,
  })
}

function notAnswering({ dir }: Peer): KikiError {
  return new KikiError('timeout', `Kiki's host did not answer within ${ANSWER_MS / 1000} s.`, {
    hint: `Run ${homeCommand(dir, 'status')}; if it hangs too, run ${homeCommand(dir, 'stop')} and ${homeCommand(dir, 'start')}.`,
  })
}

function notUnderstood(socket: Socket, { dir }: Peer): KikiError {
  socket.destroy()
  return new KikiError('internal_error', "Kiki's host gave an answer that this bridge does not understand.", {
    hint: `The two are of different versions: run ${homeCommand(dir, 'stop')} and ${homeCommand(dir, 'start')}.`,
  })
}
