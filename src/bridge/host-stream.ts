import { type IncomingMessage, request } from 'node:http'
import type { Socket } from 'node:net'
import { ERROR_CODES, KikiError, messageOf, systemCode } from '../lib/errors.js'
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
  socket: Socket
  /** Bytes of the stream that came together with the answer. */
  head: Buffer
}

interface Answer {
  response: IncomingMessage
  upgraded: HostStream | undefined
}

/** A host answers in milliseconds; one that needs longer than this hangs. */
const ANSWER_MS = 10_000
const MAX_ANSWER_BYTES = 64 * 1024
const ABSENT = ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE']

/**
 * Opens a bridge stream: asks the host for a credential for this one connection (KI-045), then upgrades to newline-delimited JSON-RPC.
 * @throws HostAbsent when no host answers.
 * @throws KikiError the host's own refusal (unknown or revoked connection, unknown session, …), `timeout`, or `permission_denied`.
 */
export async function openHostStream(socketPath: string, wanted: StreamRequest): Promise<HostStream> {
  const body = JSON.stringify({ client: wanted.client, bridge: wanted.bridge })
  const post = await ask(socketPath, 'POST', '/api/bridge/credential', { 'content-type': 'application/json' }, body)
  const granted = await readAnswer(post)
  if (typeof granted.credential !== 'string') throw notUnderstood()
  const query = new URLSearchParams()
  if (wanted.session !== undefined) query.set('session', wanted.session)
  if (wanted.discovery) query.set('discovery', '1')
  const answer = await ask(socketPath, 'GET', query.size > 0 ? `/bridge?${query}` : '/bridge', {
    connection: 'Upgrade',
    upgrade: 'kiki-bridge',
    authorization: `Bearer ${granted.credential}`,
  })
  if (answer.upgraded) return answer.upgraded
  await readAnswer(answer)
  throw notUnderstood()
}

function ask(
  socketPath: string,
  method: string,
  path: string,
  headers: Record<string, string>,
  body?: string,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    // The Host header passes the host's allow-list (GU-62); `agent: false` gives the request a connection of its own.
    const sent = request({ socketPath, method, path, agent: false, headers: { host: 'localhost', ...headers } })
    const timer = setTimeout(() => sent.destroy(notAnswering()), ANSWER_MS)
    sent.on('response', (response) => {
      response.once('close', () => clearTimeout(timer))
      resolve({ response, upgraded: undefined })
    })
    sent.on('upgrade', (response, socket, head) => {
      clearTimeout(timer)
      resolve({ response, upgraded: { socket: socket as Socket, head } })
    })
    sent.on('error', (error) => {
      clearTimeout(timer)
      reject(connectError(error, socketPath))
    })
    sent.end(body)
  })
}

/** The JSON of a 200 answer; any other answer is thrown. */
async function readAnswer({ response }: Answer): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk)
      size += chunk.length
      if (size > MAX_ANSWER_BYTES) throw notUnderstood()
    }
  } catch (error) {
    if (error instanceof KikiError) throw error
    throw new HostAbsent(messageOf(error))
  }
  const status = response.statusCode ?? 0
  if (status === 503) throw new HostAbsent('The host is starting or stopping.')
  const value = parseObject(Buffer.concat(chunks).toString('utf8'))
  if (status === 200) return value
  throw refusal(status, value.error)
}

function refusal(status: number, error: unknown): KikiError {
  if (!isObject(error) || typeof error.message !== 'string') {
    return new KikiError('internal_error', `Kiki's host answered with HTTP status ${status}.`, {
      hint: 'Run `kiki doctor`, and update Kiki if the host is of another version.',
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

function connectError(error: Error, socketPath: string): Error {
  if (error instanceof KikiError) return error
  const code = systemCode(error) ?? ''
  if (ABSENT.includes(code)) return new HostAbsent(error.message)
  if (code === 'EACCES' || code === 'EPERM') {
    return new KikiError('permission_denied', `This user may not open Kiki's socket ${socketPath}.`, {
      hint: 'Run the client as the user who owns this Kiki home, or give another --home.',
    })
  }
  return new KikiError('internal_error', `Kiki's socket ${socketPath} cannot be opened: ${error.message}.`, {
    hint: 'Run `kiki doctor`.',
  })
}

function notAnswering(): KikiError {
  return new KikiError('timeout', `Kiki's host did not answer within ${ANSWER_MS / 1000} s.`, {
    hint: 'Run `kiki status`; if it hangs too, run `kiki stop` and `kiki start`.',
  })
}

function notUnderstood(): KikiError {
  return new KikiError('internal_error', "Kiki's host gave an answer that this bridge does not understand.", {
    hint: 'The two are of different versions: run `kiki stop` and `kiki start`.',
  })
}
