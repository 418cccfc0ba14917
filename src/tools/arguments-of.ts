import type { ArgumentKind } from '../policy/rules.js'
import { findNative } from './catalog.js'

/** What the argument pattern of a rule about a tool is compared with; undefined for a name that no native tool has (PO-02). */
export function argumentsOf(tool: string): ArgumentKind | undefined {
  const native = findNative(tool)
  if (native === undefined) return undefined
  if (native.command !== undefined) return 'command'
  return native.targets === undefined ? 'none' : 'paths'
}
