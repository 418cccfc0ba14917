import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KikiError } from '../../../src/lib/errors.js'
import type { Tool, ToolContext, ToolResult } from '../../../src/tools/tool.js'
import { createHomeFence } from '../../../src/workspace/fence.js'
import { createJournal } from '../../../src/workspace/journal.js'
import { openWorkspace } from '../../../src/workspace/workspace.js'

export interface TestFolder {
  root: string
  journalDir: string
  path(name: string): string
  context(options?: { signal?: AbortSignal; inlineText?: number }): ToolContext
  remove(): void
}

/** A real workspace, home and journal in a folder of their own. */
export function testFolder(): TestFolder {
  const base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-text-')))
  const root = join(base, 'ws')
  const home = join(base, 'home')
  mkdirSync(root)
  mkdirSync(home, { mode: 0o700 })
  const fence = createHomeFence(home)
  const journalDir = join(home, 'journal')
  let operations = 0
  return {
    root,
    journalDir,
    path: (name) => join(root, name),
    context({ signal = new AbortController().signal, inlineText = 24_000 } = {}) {
      const operationId = `op${operations++}`
      return {
        operationId,
        workspace: openWorkspace({ root, dirs: [], home: fence }),
        journal: createJournal({ dir: journalDir, operationId }),
        processes: {
          run: () => Promise.reject(new Error('these tools start no process')),
          close: () => Promise.resolve(),
        },
        signal,
        progress() {},
        limits: { inlineText },
      }
    },
    remove: () => rmSync(base, { recursive: true, force: true }),
  }
}

/** Runs a tool as the gate does: arguments through its schema. */
export async function call(tool: Tool, context: ToolContext, args: Record<string, unknown>): Promise<ToolResult> {
  return tool.run(context, tool.input.parse(args))
}

export function textOf(result: ToolResult): string {
  return result.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
}

/** The refusal that a call ends in. */
export async function refusal(promise: Promise<unknown>): Promise<KikiError> {
  const error = await promise.then(
    () => new Error('it was not refused'),
    (reason: unknown) => reason,
  )
  if (error instanceof Error && error.name === 'KikiError') return error as KikiError
  throw error
}
