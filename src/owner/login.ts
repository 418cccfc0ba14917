import { Hono } from 'hono'
import { deleteCookie, setCookie } from 'hono/cookie'
import { z } from 'zod'
import { bodyCap } from '../http/guards.js'
import { jsonBody } from '../http/json-body.js'
import { KikiError } from '../lib/errors.js'
import type { Log } from '../lib/log.js'
import { OWNER_COOKIE, type OwnerAuth, type OwnerEnv, signedOut } from './auth.js'

const MAX_LOGIN_BYTES = 4096
/** No Max-Age: the browser forgets it when it closes. Not Secure: the listener is plain HTTP on loopback. */
const COOKIE = { httpOnly: true, sameSite: 'Strict', path: '/' } as const

/**
 * Signing in to and out of the settings page (GU-62). Mount on `/api`, behind the guards and `auth.middleware`.
 * - `POST /login/codes` (local socket only) → `{code, expires_at}`, good once, for 2 minutes
 * - `POST /login` `{code}` → `{page_secret}` and the cookie; 401 for a bad code, 429 after 10 bad ones in a minute
 * - `POST /logout` ends the calling page's session, `POST /logout/all` all sessions and unused codes → `{ended}`
 */
export function loginRoutes({ auth, log }: { auth: OwnerAuth; log: Log }) {
  return new Hono<OwnerEnv>()
    .post('/login/codes', (c) => {
      if (c.env.channel !== 'socket') {
        throw new KikiError('permission_denied', 'Login codes are made over the local socket only.', {
          hint: 'Run `kiki open` on the machine itself.',
        })
      }
      const { code, expiresAt } = auth.codes.create()
      return c.json({ code, expires_at: expiresAt.toISOString() }, 200)
    })
    .post('/login', bodyCap(MAX_LOGIN_BYTES), jsonBody(z.strictObject({ code: z.string().min(1).max(200) })), (c) => {
      if (!auth.codes.redeem(c.req.valid('json').code)) {
        log.warn({}, 'A sign-in to the settings page failed: unknown, used or expired code')
        return signedOut(c, 'This sign-in link was used before or is older than 2 minutes.')
      }
      const { cookie, pageSecret } = auth.sessions.create()
      setCookie(c, OWNER_COOKIE, cookie, COOKIE)
      log.info({}, 'The settings page signed in')
      return c.json({ page_secret: pageSecret }, 200)
    })
    .post('/logout', (c) => {
      const owner = c.var.owner
      if (owner.kind === 'page') {
        auth.sessions.end(owner.session.id)
        deleteCookie(c, OWNER_COOKIE, COOKIE)
      }
      return c.json({ ended: owner.kind === 'page' ? 1 : 0 }, 200)
    })
    .post('/logout/all', (c) => {
      auth.codes.clear()
      const ended = auth.sessions.endAll()
      deleteCookie(c, OWNER_COOKIE, COOKIE)
      log.info({ ended }, 'The settings page was signed out everywhere')
      return c.json({ ended }, 200)
    })
}
