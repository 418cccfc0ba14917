import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { type CallResult, connectClient, type TestClient } from '../helpers/clients.js'
import type { TestHost } from '../helpers/host.js'

/** A client that may run commands, over a bridge. */
export interface Bench {
  client: TestClient
  connection: string
  session: string
  /** Each call with a key of its own. */
  bash(command: string, args?: Record<string, unknown>, kiki?: Record<string, unknown>): Promise<CallResult>
  call(name: string, args?: Record<string, unknown>): Promise<CallResult>
}

export async function commandBench(
  host: TestHost,
  grant: Record<string, unknown> = {},
  session: Record<string, unknown> = {},
): Promise<Bench> {
  const connection = await host.connection({ tools: ['files', 'search', 'shell'], allow_commands: true, ...grant })
  const ref = await host.session(connection, session)
  return attach(host, connection, ref)
}

/** The same connection and session from another bridge. */
export async function attach(host: TestHost, connection: string, session: string): Promise<Bench> {
  const client = await connectClient(host, connection, 'v2 2026-07-28', { session })
  const call = (name: string, args: Record<string, unknown> = {}, kiki = {}) =>
    client.call(name, { ...args, _kiki: { idempotency_key: randomUUID(), ...kiki } })
  return { client, connection, session, call, bash: (command, args, kiki) => call('Bash', { command, ...args }, kiki) }
}

export const textOf = (result: CallResult): string => result.content.map(({ text = '' }) => text).join('\n')
/** What the command wrote. */
export const outputOf = (result: CallResult): string => result.content[0]?.text ?? ''
export const factsOf = (result: CallResult) => result._meta?.['kiki/result'] as Record<string, unknown>
export const operationOf = (result: CallResult) =>
  result._meta?.['kiki/operation'] as { operation_id: string; status: string }

/** Which of these `sleep` times are being slept by anybody. */
export function sleeping(times: readonly string[]): string[] {
  const lines = execFileSync('ps', ['-eo', 'stat,args'], { encoding: 'utf8' }).split('\n')
  return times.filter((time) => lines.some((line) => !line.startsWith('Z') && line.includes(`sleep ${time}`)))
}
