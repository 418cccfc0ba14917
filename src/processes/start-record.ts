import { readFileSync } from 'node:fs'
import { systemCode } from '../lib/errors.js'
import { killAllNow } from './members.js'

/** What identifies a child for certain, also after the host that started it died (GU-02, GU-05). */
export interface StartRecord {
  /** Also the number of its process group. */
  pid: number
  /** As {@link startTimeOf} gives it. */
  startTime: string
  /** Where it is a command: by this everything that belongs to it is known (members.ts). */
  mark?: number
}

/**
 * When a process started: field 22 of `/proc/<pid>/stat` (clock ticks since boot) and the kernel's boot id, so that a pid
 * that comes again after a reboot at the same tick is not taken for it. Undefined where no such process is.
 * Linux only; elsewhere always undefined, so nothing is ever killed on a guess.
 */
export function startTimeOf(pid: number): string | undefined {
  const stat = statOf(pid)
  return stat === undefined ? undefined : stat.startTime
}

/**
 * Kills (SIGKILL) the recorded process group if the process is still the one that was recorded: both pid and start time
 * match, and it still leads its group (GU-05). Whatever carries the record's mark is killed in any case: nothing else has it.
 * @returns whether a group was killed.
 */
export function endIfSame(record: StartRecord): boolean {
  const { pid, mark } = record
  if (mark !== undefined) killAllNow({ pid, mark, over: true })
  const stat = statOf(pid)
  if (stat === undefined || stat.startTime !== record.startTime || stat.group !== pid) return false
  try {
    return process.kill(-pid, 'SIGKILL')
  } catch (error) {
    // It ended between the look and the kill.
    if (systemCode(error) === 'ESRCH') return false
    throw error
  }
}

function statOf(pid: number): { group: number; startTime: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The second field is the program's name in parentheses, and it may hold spaces and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const ticks = fields[19]
    if (ticks === undefined) return undefined
    return { group: Number(fields[2]), startTime: `${ticks}@${bootId()}` }
  } catch (error) {
    const code = systemCode(error)
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw error
  }
}

function bootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
}
