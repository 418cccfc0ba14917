import { randomUUID } from 'node:crypto'
import type { z } from 'zod'
import { isShared } from '../exposure/catalog.js'
import type { Connection, Connections } from '../grants/connections.js'
import type { Clock } from '../lib/clock.js'
import type { Reply } from '../lib/content.js'
import { KikiError } from '../lib/errors.js'
import { connectionPaused, connectionRevoked } from '../operations/claim.js'
import type { Decision } from '../policy/decide.js'
import type { Profile, Session } from '../sessions/sessions.js'
import type { OperationRow } from '../store/operations.js'
import { findNative } from '../tools/catalog.js'
import { type KikiArguments, kikiArguments } from '../tools/schema.js'
import type { Tool } from '../tools/tool.js'
import { argumentProblems } from './argument-problems.js'
import type { Caller } from './caller.js'

export interface AuthenticateDeps {
  connections: Connections
  clock: Clock
  /** Whether the owner lets clients use Kiki at all (GR-01). */
  externalClients: boolean
}

/** The caller's connection, as it stands now. @throws KikiError when it is paused, revoked, expired or gone. */
export function authenticate(deps: AuthenticateDeps, caller: Caller): Connection {
  mustAllowClients(deps)
  const { connections } = deps
  const connection = connections.get(caller.connectionId)
  if (connection === undefined || connection.status === 'revoked') throw connectionRevoked()
  if (connection.status === 'paused') throw connectionPaused()
  if (connection.expiresAt !== null && connections.hasExpired(connection)) {
    throw new KikiError(
      'connection_revoked',
      `This connection expired at ${new Date(connection.expiresAt).toISOString()}.`,
      {
        hint: `The owner can renew it: kiki connections set ${connection.id} --expires …`,
        data: { setting: 'connection.expires_at' },
      },
    )
  }
  return connection
}

/** @throws KikiError `permission_denied` where the owner turned external clients off (GR-01). */
export function mustAllowClients({ externalClients }: Pick<AuthenticateDeps, 'externalClients'>): void {
  if (externalClients) return
  throw new KikiError('permission_denied', 'The owner has turned external clients off.', {
    hint: 'The setting is experimental.external_clients (or KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS); changing it takes a restart of the host.',
    data: { setting: 'experimental.external_clients' },
  })
}

/** A tool that some session of this connection could share; what the grant does not share is not found. */
export function findTool(connection: Connection, name: string): Tool {
  const tool = findNative(name)
  if (tool === undefined) throw toolUnavailable(name, 'connection.tools')
  if (tool.family === 'shell' && !connection.grant.allow_commands)
    throw toolUnavailable(name, 'connection.allow_commands')
  if (!isShared(tool, connection, undefined)) throw toolUnavailable(name, 'connection.tools')
  return tool
}

/** A profile narrows its connection (GR-06). */
export function checkProfile(
  tool: Pick<Tool, 'name' | 'family'>,
  connection: Connection,
  session: Session,
  profile: Profile | undefined,
): void {
  if (!isShared(tool, connection, profile)) throw toolUnavailable(tool.name, `profiles.${session.profile}.tools`)
}

function toolUnavailable(name: string, setting: string): KikiError {
  return new KikiError('tool_unavailable', `There is no tool "${name}" here for this connection.`, {
    hint: `List the tools again; the owner decides in Kiki which tools are shared (${setting}).`,
    data: { setting },
  })
}

export interface ParsedCall {
  /** For the tool, without `_kiki`; as the client sent them, for the fingerprint. */
  raw: Record<string, unknown>
  args: unknown
  control: KikiArguments
  /** True where Kiki made the key because the connection's `idempotency` is `auto`. */
  keyMade: boolean
}

/**
 * Arguments of a native tool and of Kiki's own object.
 * @throws KikiError `invalid_arguments`, or `idempotency_required` for a side effect without a key.
 */
export function parseArguments(tool: Tool, connection: Connection, given: Record<string, unknown>): ParsedCall {
  const { _kiki, ...raw } = given
  const control = parseControl(_kiki)
  const parsed = tool.input.safeParse(raw)
  if (!parsed.success) throw invalidArguments(tool.name, parsed.error, raw)
  if (tool.effect === 'read') return { raw, args: parsed.data, control, keyMade: false }
  const { key, made } = keyFor(tool.name, connection, control)
  return { raw, args: parsed.data, control: { ...control, idempotency_key: key }, keyMade: made }
}

/**
 * The key of a side effect: the client's, or one that Kiki makes where the connection's `idempotency` is `auto`.
 * @throws KikiError `idempotency_required`.
 */
export function keyFor(
  what: string,
  connection: Connection,
  control: KikiArguments | undefined,
): { key: string; made: boolean } {
  if (control?.idempotency_key !== undefined) return { key: control.idempotency_key, made: false }
  if (connection.grant.idempotency === 'required') throw keyRequired(what)
  return { key: `auto-${randomUUID()}`, made: true }
}

/** The result of a call whose key Kiki made says that a retry would run again (spec/control.md, "Shapes"). */
export function withoutReplay(reply: Reply): Reply {
  const note = 'No idempotency key was given: a retry of this call would run again.'
  return { ...reply, content: [...reply.content, { type: 'text', text: note }] }
}

/** Reads `_kiki`. @throws KikiError `invalid_arguments`. */
export function parseControl(given: unknown): KikiArguments {
  const control = kikiArguments.safeParse(given ?? {})
  if (!control.success) throw invalidArguments('_kiki', control.error, given)
  return control.data
}

function keyRequired(tool: string): KikiError {
  return new KikiError('idempotency_required', `${tool} has side effects and needs _kiki.idempotency_key.`, {
    hint: `Call again with "_kiki": {"idempotency_key": "${randomUUID()}"}, and repeat that key only to retry the very same call.`,
  })
}

/** The refusal of arguments that do not fit the schema of `what`; `given` is what was parsed. */
export function invalidArguments(what: string, error: z.ZodError, given: unknown): KikiError {
  const problems = argumentProblems(error.issues, given)
  return new KikiError('invalid_arguments', `The arguments of ${what} are not valid: ${problems.join('; ')}.`, {
    hint: "See the tool's input schema.",
  })
}

/** @throws KikiError with the decision's code where the standing policy denies the call. */
export function mustNotBeDenied(decision: Decision): void {
  if (decision.kind !== 'deny') return
  throw new KikiError(decision.code ?? 'permission_denied', decision.reason, {
    hint: `The setting is ${decision.by}; only the owner can change it, in Kiki.`,
    data: { setting: decision.by },
  })
}

/** A yes was for the places that the owner was shown: links and folders may have been swapped since (AP-05). @throws KikiError `conflict`. */
export function mustLeadThere(asked: readonly string[] | undefined, now: readonly string[] | undefined): void {
  if (asked === undefined || JSON.stringify(asked) === JSON.stringify(now ?? [])) return
  throw new KikiError(
    'conflict',
    'What its arguments name leads elsewhere than when the owner was asked; nothing ran.',
    {
      hint: 'Call it again with a new key: the owner is asked about where it leads now.',
    },
  )
}

/** A command that was accepted, and perhaps approved, as confined does not run otherwise (SB-02). @throws KikiError `sandbox_unavailable`. */
export function mustBeAsConfined(accepted: Pick<OperationRow, 'decision'>, now: Decision): void {
  if (now.unconfined !== true || (JSON.parse(accepted.decision) as Partial<Decision>).unconfined === true) return
  throw new KikiError(
    'sandbox_unavailable',
    'It was accepted to run in a sandbox, and none works any more; nothing ran.',
    {
      hint: 'Call it again with a new key to have it decided without one. The user sees with `kiki doctor` what is missing.',
      data: { setting: 'connection.sandbox' },
    },
  )
}

/** For a call that was allowed when it was accepted and would have to be asked about by the time it can begin. */
export function asksNow(decision: Decision): KikiError {
  return new KikiError(
    'approval_unavailable',
    `${decision.reason} It was not asked about when it was accepted; nothing ran.`,
    {
      hint: 'Call it again with a new key: the owner is asked then.',
      data: { setting: decision.by },
    },
  )
}

/** How long a call waits before it is answered by a receipt: the call's wish within the connection's cap (OP-08). */
export function inlineWait(connection: Connection, wanted: number | undefined): number {
  return Math.min(wanted ?? connection.grant.wait_ms, connection.grant.max_wait_ms)
}
