import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

export interface TestHost {
  base: string
  home: string
  /** An empty folder to work in. */
  workspace: string
  pid: number
  socket: string
  ownerUrl: string
  process: ChildProcess
  /** One call of the owner API over the socket; throws the API's error message when refused. */
  api<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T>
  connection(fields?: Record<string, unknown>, name?: string): Promise<string>
  session(connection: string, fields?: Record<string, unknown>): Promise<string>
  /** `kill -9`, and waits until it is gone. */
  kill(): Promise<void>
  /** Starts a host again on the same home. */
  restart(): Promise<void>
  stop(): Promise<void>
}

export interface HostTestOptions {
  /** Use this folder (with `home` and `ws` in it) instead of a fresh one. */
  base?: string
  /** Name of the home in the folder. */
  homeName?: string
  env?: Record<string, string>
  /** Runs the host as this user (and group), who then owns its folders. The test has to be the superuser's. */
  user?: number
  /** Written to config.toml before the start. */
  config?: string
}

/** A real host process on a fresh home. */
export async function startHost(options: HostTestOptions = {}): Promise<TestHost> {
  const base = options.base ?? realpathSync(mkdtempSync(join(tmpdir(), 'kiki-')))
  const home = join(base, options.homeName ?? 'home')
  const workspace = join(base, 'ws')
  mkdirSync(workspace, { recursive: true })
  mkdirSync(home, { recursive: true, mode: 0o700 })
  if (options.config !== undefined) {
    const { writeFileSync } = await import('node:fs')
    writeFileSync(join(home, 'config.toml'), options.config)
  }
  const { user } = options
  if (user !== undefined) for (const folder of [base, home, workspace]) chownSync(folder, user, user)
  let running = await launch(home, options.env, user)
  const host: TestHost = {
    base,
    home,
    workspace,
    ...running.facts,
    process: running.child,
    api: (method, path, body) => callApi(host.socket, method, path, body),
    async connection(grant = {}, name = 'test') {
      const made = await host.api<{ id: string }>('POST', '/api/connections', {
        name,
        grant: { tools: ['files', 'search'], ceiling: 'full', ...grant },
      })
      return made.id
    },
    async session(connection, fields = {}) {
      const made = await host.api<{ session_ref: string }>('POST', '/api/sessions', {
        connection,
        workspace,
        ...fields,
      })
      return made.session_ref
    },
    async kill() {
      const gone = once(running.child, 'exit')
      running.child.kill('SIGKILL')
      await gone
    },
    async restart() {
      running = await launch(home, options.env, user)
      Object.assign(host, running.facts, { process: running.child })
    },
    async stop() {
      if (running.child.exitCode === null && running.child.signalCode === null) {
        const gone = once(running.child, 'exit')
        running.child.kill('SIGTERM')
        await gone
      }
      if (options.base === undefined) rmSync(base, { recursive: true, force: true })
    },
  }
  return host
}

interface Launched {
  child: ChildProcess
  facts: { pid: number; socket: string; ownerUrl: string }
}

async function launch(home: string, env: Record<string, string> = {}, user?: number): Promise<Launched> {
  const child = spawn(process.execPath, [MAIN, 'start', '--home', home, '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
    ...(user === undefined ? {} : { uid: user, gid: user, cwd: home }),
  })
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  for (;;) {
    const facts = parse(out)
    if (facts !== undefined)
      return { child, facts: { pid: facts.pid, socket: facts.socket, ownerUrl: facts.owner_url } }
    const ended = await Promise.race([
      once(child.stdout, 'data').then(() => false),
      once(child, 'exit').then(() => true),
    ])
    if (ended && parse(out) === undefined) throw new Error(`the host did not start: ${err || out}`)
  }
}

function parse(text: string): { pid: number; socket: string; owner_url: string } | undefined {
  try {
    const facts = JSON.parse(text) as { pid?: number; socket: string; owner_url: string }
    // A start that failed says so in JSON too.
    return facts.pid === undefined ? undefined : { ...facts, pid: facts.pid }
  } catch {
    return undefined
  }
}

/** An error of the owner API. */
export class ApiFailure extends Error {
  readonly code: string
  readonly status: number
  constructor(status: number, error: { code: string; message: string; hint?: string }) {
    super(`${error.code}: ${error.message} ${error.hint ?? ''}`)
    this.code = error.code
    this.status = status
  }
}

export function callApi<T>(socketPath: string, method: string, path: string, body?: unknown): Promise<T> {
  return new Promise((resolve, reject) => {
    const sent = method === 'GET' ? undefined : JSON.stringify(body ?? {})
    // Node.js sends the body of a DELETE without its length otherwise, and the host takes it for another request.
    const headers =
      sent === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(sent) }
    const call = request({ socketPath, method, path, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part: string) => {
        text += part
      })
      answer.on('end', () => {
        const value = JSON.parse(text)
        if ((answer.statusCode ?? 500) < 400) resolve(value)
        else reject(new ApiFailure(answer.statusCode ?? 500, value.error))
      })
    })
    call.on('error', reject)
    call.end(sent)
  })
}
