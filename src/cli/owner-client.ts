import { readFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { hc } from 'hono/client'
import { z } from 'zod'
import { type HomePaths, homeCommand } from '../config/home.js'
import { ERROR_CODES, KikiError, messageOf, systemCode } from '../lib/errors.js'
import type { OwnerApi } from '../owner/app.js'

/** Stands in URLs and in the Host header, which the host checks (GU-62); the socket decides who answers. */
export const OWNER_ORIGIN = 'http://localhost'

const hostFile = z.object({ socket: z.string() })
const refusal = z.object({
  error: z.object({
    code: z.enum(ERROR_CODES).catch('internal_error'),
    message: z.string(),
    hint: z.string().optional(),
    data: z.record(z.string(), z.unknown()).optional(),
  }),
})

/** An answer of the owner API, typed or not: what `hc` and `fetch` have in common. */
interface Answer {
  ok: boolean
  status: number
  json(): Promise<unknown>
}

/** What the routes of one call can answer with. */
type Result<A extends Answer> = Awaited<ReturnType<A['json']>>

export type OwnerClient = ReturnType<typeof createOwnerClient>

/** The typed owner API of the host of this home. */
export function createOwnerClient(paths: HomePaths) {
  return hc<OwnerApi>(OWNER_ORIGIN, { fetch: createOwnerFetch(paths) })
}

/**
 * `fetch` to the host of this home over its local socket, for `hc` (design §2). Streams answers, so that events can be followed.
 * @throws KikiError `upstream_unavailable` where no host runs, `permission_denied` where the socket is another user's.
 */
export function createOwnerFetch(paths: HomePaths): typeof fetch {
  return async (input, init) => {
    if (typeof input === 'string') mustStayItself(input)
    const request = new Request(input, init)
    const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer())
    const answer = await send(paths, request, body)
    const headers = new Headers()
    for (const [name, values] of Object.entries(answer.headersDistinct)) {
      for (const value of values ?? []) headers.append(name, value)
    }
    const status = answer.statusCode ?? 500
    const bodiless = status === 204 || status === 304
    if (bodiless) answer.resume()
    return new Response(bodiless ? null : (Readable.toWeb(answer) as ReadableStream), { status, headers })
  }
}

/** An id such as `..` would make another request of it: `processes/../stop` is `stop`. @throws KikiError `invalid_arguments`. */
function mustStayItself(url: string): void {
  const [path = ''] = url.slice(OWNER_ORIGIN.length).split('?')
  if (!path.split('/').some((name) => name === '.' || name === '..')) return
  throw new KikiError('invalid_arguments', '"." and ".." name nothing here.', {
    hint: 'Give an id as the lists show it.',
  })
}

/**
 * The JSON of an answer.
 * @throws KikiError the host's own refusal.
 */
export async function resultOf<A extends Answer>(pending: Promise<A>): Promise<Result<A>> {
  const answer = await pending
  if (answer.ok) return (await answer.json()) as Result<A>
  const refused = refusal.safeParse(await answer.json().catch(() => undefined))
  if (refused.success) {
    const { code, message, hint, data } = refused.data.error
    throw new KikiError(code, message, { ...(hint !== undefined && { hint }), ...(data && { data }) })
  }
  throw new KikiError('internal_error', `Kiki's host answered with HTTP status ${answer.status}.`, {
    hint: 'Restart the host if Kiki was updated while it ran: `kiki stop`, then `kiki start`, with the same --home if you gave one.',
  })
}

function send(paths: HomePaths, request: Request, body: Buffer | undefined): Promise<IncomingMessage> {
  const { pathname, search } = new URL(request.url)
  const socketPath = currentSocket(paths)
  return new Promise((resolve, reject) => {
    const sent = httpRequest({
      socketPath,
      method: request.method,
      path: `${pathname}${search}`,
      agent: false,
      signal: request.signal,
      headers: {
        // Also where there is nothing to say: the host takes no other kind from a page or a program (GU-62).
        ...(request.method !== 'GET' && { 'content-type': 'application/json' }),
        ...Object.fromEntries(request.headers),
        ...pipeToken(paths),
        host: 'localhost',
        'content-length': body?.length ?? 0,
      },
    })
    sent.on('response', resolve)
    sent.on('error', (error) => reject(request.signal.aborted ? error : connectError(error, paths, socketPath)))
    sent.end(body)
  })
}

/** Where the running host listens by its own word (GU-23), else where it would. */
export function currentSocket(paths: HomePaths): string {
  try {
    return hostFile.parse(JSON.parse(readFileSync(paths.hostFile, 'utf8'))).socket
  } catch {
    // No host file, or one that is just being written: the computed path is right for both.
    return paths.socket
  }
}

/** A named pipe of Windows has no file mode, so there the owner token says who asks (design §2). */
function pipeToken(paths: HomePaths): Record<string, string> {
  if (process.platform !== 'win32') return {}
  return { authorization: `Bearer ${readFileSync(paths.ownerToken, 'utf8').trim()}` }
}

function connectError(error: Error, { dir }: HomePaths, socketPath: string): KikiError {
  const code = systemCode(error) ?? ''
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return new KikiError('upstream_unavailable', `No Kiki host runs for ${dir}.`, {
      hint: `Start it with ${homeCommand(dir, 'start')}.`,
    })
  }
  if (code === 'EACCES' || code === 'EPERM') {
    return new KikiError('permission_denied', `This user may not open Kiki's socket ${socketPath}.`, {
      hint: 'Run this as the user who owns the home, or give another --home.',
    })
  }
  const what =
    code === 'ECONNRESET' ? 'The host ended before it answered' : `The host cannot be reached: ${messageOf(error)}`
  return new KikiError('upstream_unavailable', `${what}.`, {
    hint: `What was asked may have been done: look with ${homeCommand(dir, 'status')} before you repeat it.`,
  })
}
