import type { Context, MiddlewareHandler } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { KikiError } from '../lib/errors.js'
import { refuse } from './errors.js'

/** How a request came in. The composition gives it to `app.fetch` as `env.channel`; anything but `socket` is guarded. */
export type Channel = 'socket' | 'listener'

export interface ChannelEnv {
  Bindings: { channel: Channel }
}

/** Largest request body of the owner API, in bytes (GU-63). */
export const MAX_BODY_BYTES = 4 * 1024 * 1024

/**
 * Everything that stands before the owner API's routes and the settings page (GU-62, GU-63), in order.
 * Mount on `*`. Only the listener is checked for Host and Origin: a browser cannot reach the local socket.
 * @param port the listener's port, asked at each request because it is known only once the listener is bound.
 */
export function ownerGuards({ port }: { port: () => number }): MiddlewareHandler<ChannelEnv>[] {
  return [securityHeaders(), ownOriginOnly({ port }), jsonOnly()]
}

/**
 * Refuses with 403, before anything is read: a foreign Host (DNS rebinding), an Origin that is not exactly the page's
 * own, and what a browser says another site asked for; with 400, on the socket too, what is no URL. No CORS header is ever sent, so there is none to reflect.
 */
export function ownOriginOnly({ port }: { port: () => number }): MiddlewareHandler<ChannelEnv> {
  return async (c, next) => {
    const readable = URL.canParse(c.req.url)
    if (c.env.channel !== 'socket') {
      const host = c.req.header('host') ?? ''
      // An absolute-form request target (RFC 9112 §3.2.2) names a host of its own.
      if (!ownHosts(port()).includes(host) || !readable || new URL(c.req.url).host !== host) throw refusal('Host', host)
      const origin = c.req.header('origin')
      if (origin !== undefined && origin !== `http://${host}`) throw refusal('Origin', origin)
      if (!fetchedByUs(c)) throw refusal('Sec-Fetch-Site', c.req.header('sec-fetch-site') ?? '')
    }
    // The socket takes any Host, but of one that is none no request can be made.
    if (!readable) {
      throw new KikiError('invalid_arguments', "The request's Host and target are no URL together.", {
        hint: 'Send Host: localhost.',
      })
    }
    await next()
  }
}

function ownHosts(port: number): string[] {
  return [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]
}

/**
 * `same-site` is refused like `cross-site`: another port of 127.0.0.1, where an agent's dev server may listen, is the
 * same site. A link or `kiki open`'s redirect file may still open the page itself: a top-level navigation, outside the API.
 */
function fetchedByUs(c: Context): boolean {
  const site = c.req.header('sec-fetch-site')
  if (site === undefined || site === 'same-origin' || site === 'none') return true
  return (
    c.req.method === 'GET' &&
    c.req.header('sec-fetch-mode') === 'navigate' &&
    c.req.header('sec-fetch-dest') === 'document' &&
    !c.req.path.startsWith('/api')
  )
}

function refusal(header: string, value: string): KikiError {
  return new KikiError('permission_denied', `The request's ${header} is not that of this Kiki host.`, {
    hint: 'Use the address that `kiki status` prints, exactly.',
    data: { header, value: value.slice(0, 200) },
  })
}

/** Refuses with 415 what a form or a `no-cors` fetch of another site can send: every body must say that it is JSON. */
export function jsonOnly(): MiddlewareHandler {
  return async (c, next) => {
    if (mayHaveBody(c) && !/^application\/json(\s*;\s*charset=utf-8)?$/i.test(c.req.header('content-type') ?? '')) {
      const error = new KikiError('invalid_arguments', 'The owner API reads JSON only.', {
        hint: 'Send the header Content-Type: application/json.',
      })
      return refuse(c, error, 415)
    }
    await next()
  }
}

function mayHaveBody(c: Context): boolean {
  if (c.req.method === 'POST' || c.req.method === 'PUT' || c.req.method === 'PATCH') return true
  const length = c.req.header('content-length')
  return c.req.header('transfer-encoding') !== undefined || (length !== undefined && length !== '0')
}

/** Refuses longer bodies with 413, told or chunked. Mount after the authentication: a chunked body is held in memory. */
export function bodyCap(maxBytes: number = MAX_BODY_BYTES): MiddlewareHandler {
  return bodyLimit({
    maxSize: maxBytes,
    onError: (c) =>
      refuse(
        c,
        new KikiError('too_large', `The request body is longer than ${maxBytes} bytes.`, {
          hint: 'Send less at once.',
          data: { max_bytes: maxBytes },
        }),
      ),
  })
}

const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

/** On every answer, errors included. API answers are never cached. */
export function securityHeaders(): MiddlewareHandler {
  return async (c, next) => {
    await next()
    const headers = c.res.headers
    headers.set('Content-Security-Policy', CONTENT_SECURITY_POLICY)
    headers.set('X-Content-Type-Options', 'nosniff')
    headers.set('Referrer-Policy', 'no-referrer')
    headers.set('Cross-Origin-Opener-Policy', 'same-origin')
    headers.set('Cross-Origin-Resource-Policy', 'same-origin')
    if (!headers.has('Cache-Control')) headers.set('Cache-Control', 'no-store')
  }
}
