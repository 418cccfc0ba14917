import { spawn } from 'node:child_process'
import { MAIN } from './host.js'

export interface Ran {
  code: number | null
  out: string
  err: string
}

/** One run of the built command line on a home. */
export function runKiki(home: string, args: readonly string[], extra: NodeJS.ProcessEnv = {}): Promise<Ran> {
  const { KIKI_HOME: _, ...own } = process.env
  const env = { ...own, ...extra }
  const child = spawn(process.execPath, [MAIN, ...args, '--home', home], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ran: Ran = { code: null, out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ran.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    ran.err += text
  })
  return new Promise((done, fail) => {
    child.once('error', fail)
    child.once('close', (code) => done({ ...ran, code }))
  })
}

/** The value of a command with `--json`, and its exit code. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever a command prints.
export async function kikiJson(home: string, args: readonly string[]): Promise<{ code: number | null; value: any }> {
  const ran = await runKiki(home, [...args, '--json'])
  return { code: ran.code, value: JSON.parse(ran.out) }
}
