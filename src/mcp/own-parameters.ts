import type { Caller } from '../calls/caller.js'

/** Parameters that a client adds to every tool for itself, and sends to the server all the same (tried, docs/clients.md). */
const OWN_PARAMETERS: Record<string, readonly string[]> = {
  'gemini-cli-mcp-client': ['wait_for_previous'],
}

/**
 * The arguments that are meant for the tool. What a known client added for its own scheduling is left out before anything looks at
 * them, so that a strict schema does not refuse it and a retry without it is still the same call (OP-02).
 */
export function withoutOwnParameters(client: Caller['client'], args: Record<string, unknown>): Record<string, unknown> {
  const own = Object.entries(OWN_PARAMETERS).find(([name]) => name === client?.name)?.[1]
  if (own === undefined) return args
  return Object.fromEntries(Object.entries(args).filter(([name]) => !own.includes(name)))
}
