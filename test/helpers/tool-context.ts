import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KikiError } from '../../src/lib/errors.js'
import { newId } from '../../src/lib/ids.js'
import type { Processes } from '../../src/processes/processes.js'
import type { Tool, ToolContext } from '../../src/tools/tool.js'
import { createHomeFence, type HomeFence } from '../../src/workspace/fence.js'
import { createJournal } from '../../src/workspace/journal.js'
import { openWorkspace } from '../../src/workspace/workspace.js'

/** A fresh folder with a workspace `ws`, a home `home` and a place outside, `out`. */
export interface Sandbox {
  base: string
  root: string
  home: string
  out: string
  journalDir: string
  fence: HomeFence
  /** A context of a new operation over the workspace. */
  context(overrides?: Partial<ToolContext>): ToolContext
  remove(): void
}

const NO_PROCESSES: Processes = {
  run: () => Promise.reject(new KikiError('internal_error', 'This test starts no processes.')),
  close: () => Promise.resolve(),
}

export function createSandbox(options: { homeInside?: boolean; extraDirs?: string[] } = {}): Sandbox {
  const base = realpathSync.native(mkdtempSync(join(tmpdir(), 'kiki-test-')))
  const root = join(base, 'ws')
  const home = options.homeInside === true ? join(root, '.kiki') : join(base, 'home')
  const out = join(base, 'out')
  const journalDir = join(home, 'changes')
  for (const dir of [root, home, out]) mkdirSync(dir, { recursive: true })
  const extraDirs = (options.extraDirs ?? []).map((name) => join(base, name))
  for (const dir of extraDirs) mkdirSync(dir, { recursive: true })
  const fence = createHomeFence(home)
  return {
    base,
    root,
    home,
    out,
    journalDir,
    fence,
    context(overrides = {}) {
      const operationId = newId('op')
      return {
        operationId,
        workspace: openWorkspace({ root, dirs: extraDirs, home: fence }),
        journal: createJournal({ dir: journalDir, operationId }),
        processes: NO_PROCESSES,
        signal: new AbortController().signal,
        progress: () => undefined,
        limits: { inlineText: 24_000 },
        ...overrides,
      }
    },
    remove: () => rmSync(base, { recursive: true, force: true }),
  }
}

/** The error that a call fails with; fails the test where it does not. */
export async function refusal(action: () => unknown): Promise<KikiError> {
  try {
    await action()
  } catch (error) {
    if (error instanceof KikiError) return error
    throw error
  }
  throw new Error('expected a KikiError, but nothing was thrown')
}

/** Runs a tool as the gate does, arguments parsed; returns its text and facts. */
export async function runTool(
  tool: Tool,
  context: ToolContext,
  args: Record<string, unknown>,
): Promise<{ text: string; facts: Record<string, unknown> }> {
  const result = await tool.run(context, tool.input.parse(args))
  const texts = result.content.map((block) => (block.type === 'text' ? block.text : ''))
  return { text: texts.join('\n'), facts: result.facts ?? {} }
}
