import { createHash, randomBytes } from 'node:crypto'
import { realpathSync, statSync } from 'node:fs'
import { z } from 'zod'
import type { Clock } from '../lib/clock.js'
import { createSavedDeadlines } from '../lib/deadline.js'
import { KikiError } from '../lib/errors.js'
import { newId } from '../lib/ids.js'
import type { ConnectionRow } from '../store/connections.js'
import type { Store } from '../store/store.js'
import { type Grant, grantSchema } from './grant.js'

/** One client's grant as the rest of Kiki sees it. */
export interface Connection {
  id: string
  name: string
  kind: ConnectionRow['kind']
  status: ConnectionRow['status']
  policyVersion: number
  grant: Grant
  expiresAt: number | null
  createdAt: number
  lastUsedAt: number | null
}

const nameSchema = z.string().trim().min(1).max(100)

export const newConnectionSchema = z.strictObject({
  name: nameSchema,
  kind: z.enum(['local', 'remote', 'token']).default('local'),
  grant: z.record(z.string(), z.unknown()).default({}),
  /** Milliseconds since 1970. */
  expires_at: z.number().int().positive().nullable().default(null),
})

export const changedConnectionSchema = z.strictObject({
  name: nameSchema.optional(),
  grant: z.record(z.string(), z.unknown()).optional(),
  expires_at: z.number().int().positive().nullable().optional(),
})

export type Connections = ReturnType<typeof createConnections>

export interface ConnectionsDeps {
  store: Store
  clock: Clock
  /** What a new connection gets where it does not say otherwise (`[calls]` in config.toml). */
  defaults: Partial<Grant>
}

export function createConnections({ store, clock, defaults }: ConnectionsDeps) {
  /** Every call looks its connection up: an unchanged grant is not parsed again. */
  const parsed = new Map<string, { json: string; grant: Grant }>()
  const expiries = createSavedDeadlines(clock)
  for (const { id, expires_at } of store.connections.list()) if (expires_at !== null) expiries.see(id, expires_at)

  function get(id: string): Connection | undefined {
    const row = store.connections.get(id)
    if (row === undefined) return undefined
    let known = parsed.get(id)
    if (known?.json !== row.grant_json) {
      known = { json: row.grant_json, grant: readGrant(row) }
      parsed.set(id, known)
    }
    return fromRow(row, known.grant)
  }

  /** @throws KikiError `not_found`. */
  function require(id: string): Connection {
    const connection = get(id)
    if (connection === undefined) {
      throw new KikiError('not_found', `There is no connection ${id}.`, {
        hint: 'List them with `kiki connections list`.',
      })
    }
    return connection
  }

  return {
    get,
    require,
    list: (): Connection[] => store.connections.list().map((row) => fromRow(row, readGrant(row))),
    count: () => store.connections.count(),

    /** Whether its time is over, by the wall clock or by the one that never steps (GU-44). */
    hasExpired: ({ id, expiresAt }: Pick<Connection, 'id' | 'expiresAt'>): boolean =>
      expiresAt !== null && expiries.hasPassed(id, expiresAt),

    /** Makes a connection; a `token` connection's bearer token is returned this once and stored hashed (GR-04). */
    async create(input: z.output<typeof newConnectionSchema>): Promise<{ connection: Connection; token?: string }> {
      const grant = parseGrant({ ...defaults, ...input.grant })
      const id = newId('client', clock.now())
      const token = input.kind === 'token' ? `kiki_${randomBytes(32).toString('base64url')}` : undefined
      await store.commits.durable(() => {
        store.connections.insert({
          id,
          name: input.name,
          kind: input.kind,
          grant_json: JSON.stringify(grant),
          expires_at: input.expires_at,
          created_at: clock.now(),
        })
        if (input.expires_at !== null) expiries.see(id, input.expires_at)
        if (token !== undefined) store.connections.insertToken(hashToken(token), id, clock.now())
      })
      return token === undefined ? { connection: require(id) } : { connection: require(id), token }
    },

    /** The changed connection, without saving it: what it would be, and whether its access policy differs. */
    changed(
      id: string,
      change: z.output<typeof changedConnectionSchema>,
    ): { next: Connection; policyChanged: boolean } {
      const before = require(id)
      const grant = change.grant === undefined ? before.grant : parseGrant({ ...before.grant, ...change.grant })
      const policyChanged = ACCESS_FIELDS.some(
        (field) => JSON.stringify(grant[field]) !== JSON.stringify(before.grant[field]),
      )
      const next = {
        ...before,
        name: change.name ?? before.name,
        grant,
        expiresAt: change.expires_at === undefined ? before.expiresAt : change.expires_at,
        policyVersion: before.policyVersion + (policyChanged ? 1 : 0),
      }
      if (next.expiresAt !== null) expiries.see(id, next.expiresAt)
      return { next, policyChanged }
    },

    /** Notes that it was used; written at most once a second, with the next commit. */
    touch(connection: Connection): void {
      const now = clock.now()
      const last = connection.lastUsedAt
      // A time that lies ahead is from before the wall clock was put back.
      if (last !== null && now - last < 1000 && now >= last) return
      store.commits.lazy(() => store.connections.touch(connection.id, now))
    },

    /** The connection that a static bearer token belongs to. */
    byToken(token: string): Connection | undefined {
      const id = store.connections.connectionOfToken(hashToken(token))
      return id === undefined ? undefined : get(id)
    },
  }
}

/** Fields whose change makes a new policy version (AP-08). */
const ACCESS_FIELDS = ['tools', 'ceiling', 'allow_commands', 'memory', 'history', 'sandbox', 'network', 'dirs'] as const

/** Validates the fields of a grant and makes its directories canonical. @throws KikiError `invalid_arguments`. */
export function parseGrant(fields: Record<string, unknown>): Grant {
  const parsed = grantSchema.safeParse(fields)
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'grant'}: ${issue.message}`)
    throw new KikiError('invalid_arguments', `The grant is not valid: ${problems.join('; ')}.`)
  }
  return { ...parsed.data, dirs: parsed.data.dirs.map(realDirectory) }
}

function realDirectory(path: string): string {
  try {
    const real = realpathSync(path)
    if (statSync(real).isDirectory()) return real
  } catch (cause) {
    throw new KikiError('not_found', `The directory ${path} cannot be granted: it does not exist.`, { cause })
  }
  throw new KikiError('invalid_arguments', `${path} is not a directory.`)
}

function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex')
}

function readGrant(row: ConnectionRow): Grant {
  return grantSchema.parse(JSON.parse(row.grant_json))
}

function fromRow(row: ConnectionRow, grant: Grant): Connection {
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    status: row.status,
    policyVersion: row.policy_version,
    grant,
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    lastUsedAt: row.last_used_at,
  }
}
