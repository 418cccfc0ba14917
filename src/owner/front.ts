import { Hono, type MiddlewareHandler } from 'hono'
import { errorHandler, notFound } from '../http/errors.js'
import { bodyCap, ownerGuards } from '../http/guards.js'
import { type StaticFiles, staticFiles } from '../http/static.js'
import type { Log } from '../lib/log.js'
import type { OwnerAuth, OwnerEnv } from './auth.js'
import { loginRoutes } from './login.js'

export interface OwnerFrontOptions {
  auth: OwnerAuth
  /** The owner listener's port, once it is bound. */
  port: () => number
  /** The owner API's routes, without `/api` in front. */
  routes: Hono<OwnerEnv>
  /** The built settings page. */
  files: StaticFiles
  log: Log
  /** Notes what the owner did (GU-68). */
  record: MiddlewareHandler<OwnerEnv>
}

/**
 * The whole of what answers on the local socket and the owner listener, in the one order that is safe (GU-62, GU-63):
 * where from, what kind, who, how much, and only then the routes. Call it as `app.fetch(request, {...env, channel})`.
 */
export function createOwnerFront({ auth, port, routes, files, log, record }: OwnerFrontOptions): Hono<OwnerEnv> {
  const app = new Hono<OwnerEnv>()
  app.onError(errorHandler({ log }))
  app.notFound(notFound)
  app.use('*', ...ownerGuards({ port }))
  app.use('/api/*', auth.middleware, bodyCap(), record)
  app.route('/api', loginRoutes({ auth, log }))
  app.route('/api', routes)
  app.use('*', staticFiles(files))
  return app
}
