import { timingSafeEqual } from 'node:crypto'
import type { Context, MiddlewareHandler, TypedResponse } from 'hono'
import { getCookie } from 'hono/cookie'
import { type ErrorBody, refuse } from '../http/errors.js'
import type { ChannelEnv } from '../http/guards.js'
import type { Clock } from '../lib/clock.js'
import { KikiError } from '../lib/errors.js'
import { sha256 } from '../lib/json.js'
import { type BrowserSession, type BrowserSessions, createBrowserSessions } from './browser-sessions.js'
import { createLoginCodes, type LoginCodes } from './login-codes.js'

export const OWNER_COOKIE = 'kiki_owner'
export const PAGE_HEADER = 'X-Kiki-Page'

/** By which way the owner is calling. */
export type OwnerCaller = { kind: 'socket' } | { kind: 'token' } | { kind: 'page'; session: BrowserSession }

export interface OwnerEnv extends ChannelEnv {
  Variables: { owner: OwnerCaller }
}

export interface OwnerAuth {
  /** Mount on `/api/*`: sets `c.var.owner`, or answers 401. Only `POST /api/login` passes without. */
  middleware: MiddlewareHandler<OwnerEnv>
  codes: LoginCodes
  sessions: BrowserSessions
}

export interface OwnerAuthOptions {
  /** SHA-256 of the owner token, in hex. */
  ownerTokenHash: string
  clock: Clock
  /** On Windows the socket is a named pipe that others may open, so there every request carries the token too. */
  socketNeedsToken?: boolean
}

/**
 * Who calls the owner API (GU-62): the local socket, without another's credential (AP-07); the owner token as a bearer; or
 * the settings page's cookie together with its header secret. The cookie alone is nothing, because browsers send it to
 * every port of 127.0.0.1.
 */
export function createOwnerAuth({ ownerTokenHash, clock, socketNeedsToken = false }: OwnerAuthOptions): OwnerAuth {
  const codes = createLoginCodes({ clock })
  const sessions = createBrowserSessions({ clock })
  const tokenHash = Buffer.from(ownerTokenHash, 'hex')

  function identify(c: Context<OwnerEnv>): OwnerCaller | undefined {
    const bySocket = c.env.channel === 'socket'
    const authorization = c.req.header('authorization')
    // Whoever shows a credential is judged by it, on the socket too: a client's own is never the owner's (AP-07).
    if (bySocket && !socketNeedsToken && authorization === undefined) return { kind: 'socket' }
    if (authorization !== undefined) {
      const token = /^Bearer +(\S+)$/i.exec(authorization)?.[1] ?? ''
      if (!timingSafeEqual(Buffer.from(sha256(token), 'hex'), tokenHash)) return undefined
      return { kind: bySocket ? 'socket' : 'token' }
    }
    const cookie = getCookie(c, OWNER_COOKIE)
    const pageSecret = c.req.header(PAGE_HEADER)
    if (cookie === undefined || pageSecret === undefined) return undefined
    const session = sessions.find(cookie, pageSecret)
    return session && { kind: 'page', session }
  }

  return {
    codes,
    sessions,
    middleware: async (c, next) => {
      if (c.req.method === 'POST' && c.req.path === '/api/login') return next()
      const owner = identify(c)
      if (owner === undefined) return signedOut(c)
      c.set('owner', owner)
      await next()
    },
  }
}

/** 401 with `data.reason` `signed_out`: by it the settings page knows that it must sign in (RFC 9110 §15.5.2). */
export function signedOut(
  c: Context,
  message = 'Only the owner may call this, and this request does not show that.',
): Response & TypedResponse<ErrorBody, 401, 'json'> {
  c.header('WWW-Authenticate', 'Bearer realm="kiki"')
  const error = new KikiError('permission_denied', message, {
    hint: 'Run `kiki open` to sign in to the settings page; programs send the token in owner.token as a bearer.',
    data: { reason: 'signed_out' },
  })
  return refuse(c, error, 401) as Response & TypedResponse<ErrorBody, 401, 'json'>
}
