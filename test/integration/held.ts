import { readdirSync, readFileSync } from 'node:fs'
import { connectClient, type TestClient } from '../helpers/clients.js'
import type { TestHost } from '../helpers/host.js'

/** Pids of the children of a process. */
export function childrenOf(pid: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((child) => parentOf(child) === pid)
}

function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined // It has just ended.
  }
}

/**
 * Holds every search of a host in the state `running`: the launcher, which starts all children of the host, is stopped by
 * a signal, so a search waits for its child. Returns the function that lets it go on.
 */
export async function holdSearches(host: TestHost, connection: string, session: string): Promise<() => void> {
  const client: TestClient = await connectClient(host, connection, 'v1', { session })
  await client.call('Grep', { pattern: 'a search starts the launcher' })
  await client.close()
  const launchers = childrenOf(host.pid)
  if (launchers.length !== 1) throw new Error(`the host has ${launchers.length} children`)
  const [launcher = 0] = launchers
  process.kill(launcher, 'SIGSTOP')
  return () => process.kill(launcher, 'SIGCONT')
}
