import { readdirSync, readFileSync } from 'node:fs'
import type { LeftOver } from './protocol.js'

/** What belongs to one command: its process group, and whatever carries its mark. */
export interface Target {
  /** Of the program itself; also the number of its group. */
  pid: number
  mark: number | undefined
  /** The program has ended: its number may be another's by now. */
  over: boolean
}

/** How long processes may take to end by themselves after SIGTERM; all must be over within 2 s (SH-02). */
export const GRACE_MS = 400
const LOOK_MS = 10
/** After this the host, which waits for the news, takes other means. */
const GIVE_UP_MS = 3000
/** Processes that are named when they are left over. */
const NAMED = 10

const LEAST_MARK = 2 ** 40
const MARKS = 2 ** 50

/**
 * A limit that nothing enforces any more since Linux 2.4 (RLIMIT_LOCKS), inherited by every descendant and never raised
 * again without privileges: set to a number of its own it tells a command's processes from all others, though they left the
 * group, the session and the parent, and cleared their environment. Undefined where there is no such thing.
 */
export function createMarks(): () => number | undefined {
  if (process.platform !== 'linux') return () => undefined
  const limit = /Max file locks\s+\S+\s+(\S+)/.exec(readFileSync('/proc/self/limits', 'latin1'))?.[1]
  return () => (limit === 'unlimited' ? LEAST_MARK + Math.floor(Math.random() * MARKS) : undefined)
}

/** Live processes that carry a mark, of those whose numbers can be theirs. A zombie is over; so is what ends meanwhile. */
function marked(mark: number, canBe: (pid: number) => boolean = () => true): LeftOver[] {
  const found: LeftOver[] = []
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!(pid > 1) || pid === process.pid || !canBe(pid) || !limitsOf(pid).includes(` ${mark} `)) continue
    const stat = read(`/proc/${pid}/stat`)
    const end = stat.lastIndexOf(')')
    if (end > 0 && !/^ [ZX]/.test(stat.slice(end + 1)))
      found.push({ pid, name: stat.slice(stat.indexOf('(') + 1, end) })
  }
  return found
}

/** What is left of a command whose program has ended. */
export function leftOf(target: Target): LeftOver[] {
  if (target.mark === undefined) return members(target)
  // What it started has a later number, up to the last one that the system gave; numbers begin again at the highest.
  const last = Number(read('/proc/loadavg').trimEnd().split(' ').at(-1))
  if (last === target.pid) return []
  return marked(target.mark, last > target.pid ? (pid) => pid > target.pid && pid <= last : undefined)
}

/** Ends everything that belongs to a command: SIGTERM, after the grace SIGKILL until nothing is left. @returns whether nothing is. */
export async function endAll(target: Target): Promise<boolean> {
  const began = performance.now()
  signalAll(target, 'SIGTERM')
  while (performance.now() < began + GRACE_MS) {
    if (members(target).length === 0) return true
    await pause(LOOK_MS)
  }
  while (performance.now() < began + GIVE_UP_MS) {
    if (signalAll(target, 'SIGKILL').length === 0) return true
    await pause(LOOK_MS)
  }
  return false
}

/** Without a pause between look and signal: for a launcher that is about to end. */
export function killAllNow(target: Target): void {
  for (let round = 0; round < 20 && signalAll(target, 'SIGKILL').length > 0; round++);
}

/** @returns the first of those that were there. */
export function signalAll(target: Target, signal: NodeJS.Signals): LeftOver[] {
  const all = members(target)
  // A program that has only just begun carries no mark yet.
  if (target.mark === undefined || !target.over) send(-target.pid, signal)
  if (target.mark !== undefined) for (const one of all) send(one.pid, signal)
  return all.slice(0, NAMED)
}

function members({ pid, mark, over }: Target): LeftOver[] {
  const found = mark === undefined ? [] : marked(mark)
  const group = mark === undefined || !over
  return found.length === 0 && group && send(-pid, 0) ? [{ pid, name: `process group ${pid}` }] : found
}

function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch {
    // ESRCH: it is over. EPERM cannot be changed from here either.
    return false
  }
}

function limitsOf(pid: number): string {
  return read(`/proc/${pid}/limits`)
}

/** Empty where the process has ended, or is not to be looked at. */
function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    // It ended between the list and the look: the most usual thing here.
    return ''
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
