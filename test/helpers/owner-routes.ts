import { Hono } from 'hono'
import { ownerRoutes } from '../../src/owner/app.js'
import type { OwnerEnv } from '../../src/owner/auth.js'
import type { OwnerDeps } from '../../src/owner/deps.js'
import { loginRoutes } from '../../src/owner/login.js'

export interface OwnerRoute {
  method: string
  /** With its parameters, such as `/api/sessions/:ref`. */
  path: string
}

/** Every route that there is, told by the application itself: one that is added is in every test that asks here. */
export function ownerRouteList(): OwnerRoute[] {
  // The routes only tell their places; nothing is called, so nothing needs to stand behind them.
  const nothing = {} as OwnerDeps
  const app = new Hono<OwnerEnv>().route('/api', loginRoutes(nothing)).route('/api', ownerRoutes(nothing))
  const found = app.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`)
  return [...new Set(found)].map((name) => {
    const [method = '', path = ''] = name.split(' ')
    return { method, path }
  })
}
