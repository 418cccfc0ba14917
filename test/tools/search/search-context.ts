import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { silentLog } from '../../../src/lib/log.js'
import { createProcesses, type Processes } from '../../../src/processes/processes.js'
import { glob } from '../../../src/tools/search/glob.js'
import { grep } from '../../../src/tools/search/grep.js'
import type { Tool, ToolContext } from '../../../src/tools/tool.js'
import type { Sandbox } from '../../helpers/tool-context.js'
import { buildLauncher } from '../../processes/build-launcher.js'

export interface Answer {
  text: string
  facts: Record<string, unknown>
  /** The lines that name files or hits. */
  body: string[]
}

/** Search tools over a real workspace, real processes and the real ripgrep. */
export function createSearch() {
  const built = buildLauncher()
  const dir = path.join(tmpdir(), `kiki-search-${process.pid}-${Math.random().toString(36).slice(2)}`)
  const processes = createProcesses({ dir, log: silentLog, env: {}, launcherPath: built.launcherPath })
  return {
    launcherPath: built.launcherPath,
    processes,
    async close() {
      await processes.close()
      rmSync(dir, { recursive: true, force: true })
      built.remove()
    },
  }
}

export async function call(
  tool: Tool,
  sandbox: Sandbox,
  processes: Processes,
  args: Record<string, unknown>,
  overrides: Partial<ToolContext> = {},
): Promise<Answer> {
  const result = await tool.run(sandbox.context({ processes, ...overrides }), tool.input.parse(args))
  const block = result.content[0]
  const text = block?.type === 'text' ? block.text : ''
  return { text, facts: result.facts ?? {}, body: bodyOf(text) }
}

export const tools = { glob, grep }

/** Writes files below the workspace; folders are made. */
export function fill(sandbox: Sandbox, files: Record<string, string | Buffer>): void {
  for (const [name, content] of Object.entries(files)) {
    const file = path.join(sandbox.root, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, content)
  }
}

/** What stands between the first line and the notes. */
function bodyOf(text: string): string[] {
  const from = text.indexOf('\n\n')
  const to = text.lastIndexOf('\n\n')
  return from < 0
    ? []
    : text
        .slice(from + 2, to > from ? to : undefined)
        .trimEnd()
        .split('\n')
}
