import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { KikiError } from '../../src/lib/errors.js'
import { newId } from '../../src/lib/ids.js'
import type { ChangedOperation, SessionChanges } from '../../src/operations/changes.js'
import type { Processes } from '../../src/processes/processes.js'
import type { Shell } from '../../src/tools/shell/shell.js'
import type { Tool, ToolContext } from '../../src/tools/tool.js'
import { createHomeFence, type HomeFence } from '../../src/workspace/fence.js'
import { createJournal, type Journal, journalContent } from '../../src/workspace/journal.js'
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

const NO_SHELL = new Proxy({} as Shell, {
  get() {
    throw new Error('This test runs no commands.')
  },
})

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
  const begun: { id: string; journal: Journal }[] = []
  return {
    base,
    root,
    home,
    out,
    journalDir,
    fence,
    context(overrides = {}) {
      const operationId = newId('op')
      const journal = createJournal({ dir: journalDir, operationId })
      const earlier = [...begun]
      begun.push({ id: operationId, journal })
      return {
        operationId,
        workspace: openWorkspace({ root, dirs: extraDirs, home: fence }),
        journal,
        changes: changesOf(earlier, journalDir),
        processes: NO_PROCESSES,
        session: { ref: 'ext_test', connectionId: 'client_test', policyVersion: 1 },
        grant: { sandbox: 'off', network: 'off' },
        needsNetwork: false,
        shell: NO_SHELL,
        signal: new AbortController().signal,
        progress: () => undefined,
        limits: { inlineText: 24_000, inlineMedia: 1_048_576 },
        scratch: join(base, 'scratch'),
        savedPart: () => undefined,
        ...overrides,
      }
    },
    remove: () => rmSync(base, { recursive: true, force: true }),
  }
}

/** The changes of earlier contexts, as those of one session whose calls all ended well. */
function changesOf(earlier: readonly { id: string; journal: Journal }[], dir: string): SessionChanges {
  const all = (): ChangedOperation[] =>
    earlier
      .map(({ id, journal }, position) => ({
        ...{ id, position, tool: 'Test', status: 'completed' as const, by: 'client' as const, at: position },
        changes: journal.records(),
      }))
      .filter(({ changes }) => changes.length > 0)
      .reverse()
  return {
    page: ({ before = Number.MAX_SAFE_INTEGER, limit }) => {
      const older = all().filter(({ position }) => position < before)
      return limit < 0 ? older : older.slice(0, limit)
    },
    since: (id) => {
      const from = id === undefined ? 0 : earlier.findIndex((one) => one.id === id)
      if (from < 0) throw new KikiError('operation_unavailable', 'There is no such operation.')
      return all().filter(({ position }) => position >= from)
    },
    content: (id, seq) => journalContent(dir, id, seq),
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
