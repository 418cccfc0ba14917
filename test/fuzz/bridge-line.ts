import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { settledWithin } from '../../src/lib/async.js'
import { MAIN } from '../helpers/host.js'
import { createLedger, type Expected } from './expected.js'

/** A real bridge whose answers are counted, however many they are. */
export interface BridgeLine {
  /** Sends bytes as they are, and a newline. */
  send(bytes: Buffer | string): void
  /** Resolves when everything sent so far has its answer. @returns the ids, as JSON text, that have none after `ms`. */
  settled(ms: number): Promise<string[]>
  /** Answers that nobody asked for, or more of them than asked for. */
  surplus(): string[]
  close(): Promise<void>
  /** Of the bridge, which has to stay alive. */
  ended(): boolean
  stderr(): string
}

export function openBridgeLine(args: readonly string[]): BridgeLine {
  const child = spawn(process.execPath, [MAIN, 'mcp', ...args], {
    env: { PATH: process.env.PATH ?? '' },
    stdio: 'pipe',
  })
  const gone = new Promise<void>((resolve) => child.on('close', () => resolve()))
  const ledger = createLedger()
  const answered = new Map<string, number>()
  let stderr = ''
  let wake = () => {}
  child.stdin.on('error', () => {})
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, method } = JSON.parse(line) as { id?: unknown; method?: unknown }
    if (method !== undefined || id === undefined || id === null) return
    const key = JSON.stringify(id)
    answered.set(key, (answered.get(key) ?? 0) + 1)
    wake()
  })
  const open = () => missing(ledger.expected, answered)
  return {
    send(bytes) {
      ledger.sent(Buffer.from(bytes))
      child.stdin.write(Buffer.concat([Buffer.from(bytes), Buffer.from('\n')]))
    },
    async settled(ms) {
      const all = new Promise<void>((resolve) => {
        wake = () => {
          if (open().length === 0) resolve()
        }
        wake()
      })
      await settledWithin(all, ms)
      wake = () => {}
      return open()
    },
    surplus: () =>
      [...answered].flatMap(([id, count]) => {
        const most = ledger.expected.get(id)?.most ?? 0
        return count > most ? [`${count} answers under the id ${id}, at most ${most} are due`] : []
      }),
    async close() {
      child.stdin.end()
      await gone
    },
    ended: () => child.exitCode !== null || child.signalCode !== null,
    stderr: () => stderr,
  }
}

function missing(expected: ReadonlyMap<string, Expected>, answered: ReadonlyMap<string, number>): string[] {
  const ids: string[] = []
  for (const [id, { least }] of expected) if ((answered.get(id) ?? 0) < least) ids.push(id)
  return ids
}
