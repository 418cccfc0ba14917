import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expect, vi } from 'vitest'
import { silentLog } from '../../src/lib/log.js'
import { type ChildProcesses, createProcesses } from '../../src/processes/processes.js'

export interface Harness {
  dir: string
  processes: ChildProcesses
  /** Runs to the end and gives all of standard output. */
  output(argv: readonly [string, ...string[]], options?: RunExtras): Promise<{ out: string; exitCode: number | null }>
  close(): Promise<void>
}

interface RunExtras {
  cwd?: string
  env?: Record<string, string>
  signal?: AbortSignal
}

export function createHarness(
  launcherPath: string,
  env: Record<string, string | undefined> = { PATH: process.env.PATH },
): Harness {
  const dir = mkdtempSync(path.join(tmpdir(), 'kiki-processes-'))
  const processes = createProcesses({ dir: path.join(dir, 'run'), log: silentLog, env, launcherPath })
  return {
    dir,
    processes,
    async output(argv, extras = {}) {
      const chunks: Buffer[] = []
      const result = await processes.run({
        argv,
        cwd: extras.cwd ?? dir,
        signal: extras.signal ?? never(),
        ...(extras.env === undefined ? {} : { env: extras.env }),
        onStdout: (chunk) => void chunks.push(chunk),
      })
      return { out: Buffer.concat(chunks).toString(), exitCode: result.exitCode }
    },
    async close() {
      await processes.close()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

export function never(): AbortSignal {
  return new AbortController().signal
}

/** Neither running nor waiting: a zombie that nobody reaped counts as gone. */
export function isGone(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/stat`)) return true
  try {
    return / [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'latin1').replace(/^.*\)/s, ''))
  } catch {
    return true
  }
}

export async function expectGone(...pids: number[]): Promise<void> {
  await vi.waitFor(() => expect(pids.filter((pid) => !isGone(pid))).toEqual([]), { timeout: 2000, interval: 10 })
}

/** The launcher that this process started last, by its parent and its script. */
export function launcherPid(launcherPath: string, parent = process.pid): number {
  const children = readFileSync(`/proc/${parent}/task/${parent}/children`, 'latin1').trim().split(' ')
  const found = children.findLast((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(launcherPath))
  if (found === undefined) throw new Error('no launcher runs')
  return Number(found)
}
