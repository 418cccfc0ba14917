import { type ChildProcess, spawn } from 'node:child_process'

export interface Answer {
  jsonrpc: string
  id?: string | number | null
  method?: string
  params?: Record<string, unknown>
  result?: Record<string, unknown>
  error?: { code: number; message: string; data?: Record<string, unknown> }
}

/** A client that sends exactly the lines it is told to. */
export interface RawClient {
  child: ChildProcess
  stderr(): string
  /** Every line of standard output so far; each is checked to be JSON. */
  messages: Answer[]
  send(message: object | string): void
  /** The first message that fits, now or later. */
  next(fits: (message: Answer) => boolean): Promise<Answer>
  answer(id: string | number | null): Promise<Answer>
  /** 2025-era opening under id `"init"`. */
  open(): Promise<Answer>
  exit: Promise<{ code: number | null; signal: NodeJS.Signals | null }>
}

export function startRaw(args: string[], env: Record<string, string> = {}): RawClient {
  const child = spawn(process.execPath, args, { env: { PATH: process.env.PATH ?? '', ...env }, stdio: 'pipe' })
  const waiters = new Set<() => void>()
  let rest = ''
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  child.stdin.on('error', () => {})
  child.stdout.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) client.messages.push(JSON.parse(line) as Answer)
    for (const check of waiters) check()
  })
  const client: RawClient = {
    child,
    stderr: () => stderr,
    messages: [],
    send: (message) => void child.stdin.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`),
    next: (fits) =>
      new Promise((resolve) => {
        const check = () => {
          const found = client.messages.find(fits)
          if (!found) return
          waiters.delete(check)
          resolve(found)
        }
        waiters.add(check)
        check()
      }),
    answer: (id) => client.next((message) => message.id === id && message.method === undefined),
    async open() {
      const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } }
      client.send({ jsonrpc: '2.0', id: 'init', method: 'initialize', params })
      const answer = await client.answer('init')
      client.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
      return answer
    },
    exit: new Promise((resolve) => child.on('close', (code, signal) => resolve({ code, signal }))),
  }
  return client
}

export const call = (id: string | number, name: string, args: object = {}) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
})

export const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''
