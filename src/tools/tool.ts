import type { z } from 'zod'
import type { Grant } from '../grants/grant.js'
import type { KeptBytes, OutcomeBlock } from '../lib/content.js'
import type { KikiError } from '../lib/errors.js'
import type { SessionChanges } from '../operations/changes.js'
import type { Effect, Family } from '../policy/modes.js'
import type { Processes } from '../processes/processes.js'
import type { Journal } from '../workspace/journal.js'
import type { Workspace } from '../workspace/workspace.js'
import type { Shell } from './shell/shell.js'

export type { ContentBlock } from '../lib/content.js'

/** What a tool answers when it succeeded. A tool that fails throws a KikiError. */
export interface ToolResult {
  content: OutcomeBlock[]
  /** A tool's own facts for programs, sent as `_meta["kiki/result"]`. */
  facts?: Record<string, unknown>
  /** Why it failed, where there is something to show beside that. */
  failure?: KikiError
}

/** What a running tool may use. It holds nothing that outlives the operation. */
export interface ToolContext {
  operationId: string
  workspace: Workspace
  /** Where the earlier content of every changed file is kept before the change (FI-14). */
  journal: Journal
  /** What was changed in this session, to be shown and undone. */
  changes: SessionChanges
  processes: Processes
  /** Whose call it is. */
  session: { ref: string; connectionId: string; policyVersion: number }
  grant: Pick<Grant, 'sandbox' | 'network'>
  /** The command is of a class that needs the network: where that is off, the owner was asked about it (SB-01). */
  needsNetwork: boolean
  shell: Shell
  /** A folder of the home for short-lived private files; made where it is missing. */
  scratch: string
  /** A part of media that an earlier call of this very session kept; undefined for any other (GU-13). */
  savedPart(operationId: string, part: number): Pick<KeptBytes, 'length' | 'read'> | undefined
  /** Aborted by cancel, revoke and host stop. */
  signal: AbortSignal
  /** One line for a person about what is happening now. */
  progress(message: string): void
  limits: {
    /** Characters of text that are answered inline (OP-13). */
    inlineText: number
    /** Bytes of media that are answered inline (OP-13). */
    inlineMedia: number
  }
}

/** One native tool: a plain object, listed in `tools/catalog.ts`. */
export interface Tool<Args = unknown> {
  /** As clients see it; matches `^[A-Za-z0-9_-]{1,64}$` (TQ-02). */
  name: string
  title: string
  /** For the model: under 900 characters, limits included. */
  description: string
  effect: Effect
  family: Family
  input: z.ZodType<Args>
  /** The places that the arguments name, for rules and approvals (PO-02); a tool without them is matched by its name only. */
  targets?(args: Args): ToolTarget[]
  /** Real paths that the call would touch and that only the session's record names, for guards (PA-05). @throws as `run`. */
  recorded?(args: Args, changes: Pick<SessionChanges, 'page' | 'since'>): string[]
  /** Tools whose deny and ask rules about paths bind this one too (PO-02): `Read` where it shows or carries content, `Write` where it changes. */
  countsAs?: readonly string[]
  /** The shell script that the arguments hold, for rules and classes (PO-04, CC-01). */
  command?(args: Args): string
  /** That script is run, in the session's sandbox where it has one; otherwise it is only typed somewhere. */
  runsCommand?: true
  /**
   * What the call would change, in words and as a diff, for the owner who is asked (AP-03). It changes nothing.
   * @throws KikiError as `run` would.
   */
  preview?(context: PreviewContext, args: Args): Promise<string>
  run(context: ToolContext, args: Args): Promise<ToolResult>
}

export type PreviewContext = Pick<ToolContext, 'workspace' | 'signal'>

export interface ToolTarget {
  path: string
  /** Whatever lies in the folder is meant too. */
  tree?: boolean
  /** False where the link itself is meant. */
  follow?: boolean
}

/** Keeps the argument type of one tool while the catalog holds them all. */
export function defineTool<Args>(tool: Tool<Args>): Tool {
  return tool as unknown as Tool
}

export function text(value: string, facts?: Record<string, unknown>): ToolResult {
  return facts === undefined
    ? { content: [{ type: 'text', text: value }] }
    : { content: [{ type: 'text', text: value }], facts }
}
