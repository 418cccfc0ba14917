import { KikiError } from '../lib/errors.js'
import type { OperationRow } from '../store/operations.js'
import { findNative } from '../tools/catalog.js'
import type { GateDeps } from './call-tool.js'
import { workspaceOf } from './terms.js'

/** Milliseconds that the owner waits for a preview at most. */
const PREVIEW_MS = 10_000

/**
 * What an operation that waits would change if it ran now, for the owner who decides (AP-03): as a diff for file changes. Undefined
 * where the tool has nothing more to show than its arguments; what it would fail with, where it would.
 */
export async function previewOperation(
  deps: Pick<GateDeps, 'sessions' | 'connections' | 'fence'>,
  row: OperationRow,
): Promise<string | undefined> {
  const tool = findNative(row.tool)
  if (tool?.preview === undefined) return undefined
  try {
    const session = deps.sessions.require(row.session_ref)
    const workspace = workspaceOf(deps, deps.connections.require(row.connection_id), session)
    const args = tool.input.parse(JSON.parse(row.arguments))
    return await tool.preview({ workspace, signal: AbortSignal.timeout(PREVIEW_MS) }, args)
  } catch (error) {
    if (error instanceof KikiError) return `As things are now it would fail: ${error.message}`
    throw error
  }
}
