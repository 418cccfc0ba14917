import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { MAIN } from '../helpers/host.js'

export interface Started {
  pid: number
  /** Resolves with standard output once the host is ready, or with undefined when it ended before. */
  ready: Promise<{ socket: string; home: string; owner_url: string } | undefined>
  ended: Promise<{ code: number | null; signal: NodeJS.Signals | null; stderr: string }>
  kill(signal: NodeJS.Signals): void
}

/** `kiki start` as a process, without waiting for anything. */
export function spawnHost(home: string, args: string[] = [], env: Record<string, string> = {}): Started {
  const child = spawn(process.execPath, [MAIN, 'start', '--home', home, '--json', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let stdout = ''
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, stderr }) as Awaited<Started['ended']>)
  const ready = new Promise<Awaited<Started['ready']>>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (/\n}\n$/.test(stdout) && stdout.includes('owner_url')) resolve(JSON.parse(stdout))
    })
    void ended.then(() => resolve(undefined))
  })
  return { pid: child.pid ?? 0, ready, ended, kill: (signal) => void child.kill(signal) }
}

/** Pids of every process that descends from `pid` now (Linux). */
export function descendants(pid: number): number[] {
  const parents = new Map<number, number>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const stat = readFileSync(join('/proc', name, 'stat'), 'latin1')
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]))
    } catch {
      // It ended while we looked.
    }
  }
  const found: number[] = []
  for (let from = [pid]; from.length > 0; ) {
    from = [...parents].filter(([, parent]) => from.includes(parent)).map(([child]) => child)
    found.push(...from)
  }
  return found
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
