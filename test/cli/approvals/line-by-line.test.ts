import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { readAnswer } from '../../../src/cli/approvals/line-by-line.js'
import { connectClient, meta, type TestClient, textOf } from '../../helpers/clients.js'
import { MAIN, startHost, type TestHost } from '../../helpers/host.js'

let host: TestHost
let client: TestClient
const children: ChildProcess[] = []

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  const connection = await host.connection({ ceiling: 'full' }, 'Desk \u001b[31m')
  const ref = await host.session(connection, { mode: 'manual' })
  client = await connectClient(host, connection, 'v1', { session: ref, args: ['--no-start'] })
  writeFileSync(join(host.workspace, 'a.txt'), 'one\ntwo\n')
  return async () => {
    await client.close()
    for (const child of children.splice(0)) child.kill('SIGKILL')
  }
})

interface Watching {
  /** The next line that fits, of those that were not read. */
  line(fits: (line: string) => boolean): Promise<string>
  /** The next JSON value of this event. */
  event(name: string): Promise<Record<string, unknown> & { id: string; approval: Record<string, unknown> }>
  say(line: string): void
  end(): void
  kill(signal: NodeJS.Signals): void
  ended: Promise<number | null>
  all(): string
}

function watch(...args: string[]): Watching {
  const child = spawn(process.execPath, [MAIN, 'approvals', 'watch', '--home', host.home, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  children.push(child)
  const lines: string[] = []
  let read = 0
  let wake: (() => void)[] = []
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line)
    for (const done of wake.splice(0)) done()
  })
  const ended = once(child, 'close').then(([code]) => code as number | null)
  void ended.then(() => {
    for (const done of wake.splice(0)) done()
  })
  const line: Watching['line'] = async (fits) => {
    for (;;) {
      const found = lines.slice(read).findIndex(fits)
      if (found >= 0) {
        read += found + 1
        return lines[read - 1] ?? ''
      }
      if (child.exitCode !== null) throw new Error(`it ended after:\n${lines.join('\n')}`)
      await new Promise<void>((resolve) => {
        wake = [...wake, resolve]
      })
    }
  }
  return {
    line,
    event: async (name) => JSON.parse(await line((text) => text.startsWith(`{"event":"${name}"`))),
    say: (text) => void child.stdin.write(`${text}\n`),
    end: () => void child.stdin.end(),
    kill: (signal) => void child.kill(signal),
    ended,
    all: () => lines.join('\n'),
  }
}

const content = () => readFileSync(join(host.workspace, 'a.txt'), 'utf8')
let keys = 0
const edit = async () => {
  const args = { path: 'a.txt', old_string: 'two', new_string: 'two \u001b[2J\u202e2' }
  const result = await client.call('Edit', { ...args, _kiki: { idempotency_key: `k${++keys}`, wait_ms: 0 } })
  return meta<{ operation_id: string }>(result, 'kiki/operation').operation_id
}
const result = (operation: string) =>
  client.call('kiki_operation', { action: 'wait', operation_id: operation, wait_ms: 20_000 })

describe('kiki approvals watch without a terminal', () => {
  it('CL-09 AP-03 GU-32 prints each question in full, and takes a denial with its message', async () => {
    const watching = watch()
    await watching.line((line) => line.startsWith('Taking questions.'))
    const operation = await edit()
    const last = await watching.line((line) => line.endsWith('waits for your answer.'))
    const id = last.split(' ')[0] ?? ''
    for (const line of ['Edit a.txt', '  │ -two', '  │ +two \\u{1b}[2J\\u{202e}2', '  │ a.txt', 'Effect     write'])
      expect(watching.all().split('\n')).toContain(line)
    expect(watching.all()).toContain(`Workspace  ${host.workspace}`)
    expect(watching.all()).toContain('Desk \\u{1b}[31m (old-client 1.0.0)')
    watching.say('yes')
    expect(await watching.line(() => true)).toContain('Answer with: approve ID')
    watching.say('approve apr_none')
    expect(await watching.line(() => true)).toContain('apr_none does not wait here')
    watching.say(`deny ${id} not on a Friday`)
    expect(await watching.line(() => true)).toBe(`${id} (Edit a.txt) was denied by the owner: not on a Friday.`)
    expect(textOf(await result(operation))).toContain('They say: “not on a Friday”')
    expect(content()).toBe('one\ntwo\n')
    expect(watching.all()).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
  })

  it('CL-09 AP-04 --json prints a value on each line; an answer runs the call; the end of the input ends it', async () => {
    const watching = watch('--json')
    await watching.event('connected')
    const operation = await edit()
    const { approval } = await watching.event('asked')
    expect(approval).toMatchObject({ operation, arguments: { new_string: 'two \u001b[2J\u202e2' } })
    expect(approval.preview).toContain('+two \\u{1b}[2J\\u{202e}2')
    watching.say(`session ${approval.id}`)
    expect(await watching.event('answered')).toMatchObject({ changed: true, approval: { scope: 'session' } })
    expect((await result(operation)).isError).not.toBe(true)
    expect(content()).toBe('one\ntwo \u001b[2J\u202e2\n')
    watching.end()
    expect(await watching.ended).toBe(0)
    for (const line of watching.all().split('\n')) expect(JSON.parse(line)).toHaveProperty('event')
    expect(watching.all()).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u)
  })

  it('CL-09 AP-02 AP-06 ended in between by a signal it changes nothing, and what is answered elsewhere is told', async () => {
    const first = watch('--json')
    await first.event('connected')
    const operation = await edit()
    const { approval } = await first.event('asked')
    first.kill('SIGTERM')
    expect(await first.ended).toBe(0)
    const second = watch('--json')
    expect((await second.event('asked')).approval).toMatchObject({ id: approval.id, status: 'waiting_approval' })
    await host.api('POST', `/api/approvals/${approval.id}/approve`)
    expect(await second.event('gone')).toMatchObject({
      id: approval.id,
      approval: { answer: 'approved', answered_by: 'owner' },
    })
    expect((await result(operation)).isError).not.toBe(true)
    second.say(`approve ${approval.id}`)
    expect(await second.event('refused')).toMatchObject({ error: { code: 'not_found' } })
  })

  it('GU-32 an answer is about what was printed before it: a file that changed since is shown again first', async () => {
    const watching = watch('--json')
    await watching.event('connected')
    const operation = await edit()
    const { approval } = await watching.event('asked')
    writeFileSync(join(host.workspace, 'a.txt'), 'zero\none\ntwo\n')
    watching.say(`approve ${approval.id}\napprove ${approval.id}`)
    for (let times = 0; times < 2; times++) {
      const changed = await watching.event('changed')
      expect(changed.approval).toMatchObject({ id: approval.id, status: 'waiting_approval' })
      expect(changed.approval.preview).toContain('zero')
    }
    expect(content()).toBe('zero\none\ntwo\n')
    watching.say(`approve ${approval.id}`)
    expect(await watching.event('answered')).toMatchObject({ changed: true })
    await result(operation)
    expect(content()).toBe('zero\none\ntwo \u001b[2J\u202e2\n')
  })

  it('CL-09 without a host it says so and fails', async () => {
    const away = watch('--json', '--home', join(host.base, 'nowhere'))
    expect(await away.ended).toBe(1)
    expect(JSON.parse(away.all())).toMatchObject({ error: { code: 'upstream_unavailable' } })
  })
})

describe('an answer on a line', () => {
  it.each([
    ['approve apr_1', { id: 'apr_1', answer: { verb: 'approve', scope: 'once' } }],
    ['  session   apr_1 ', { id: 'apr_1', answer: { verb: 'approve', scope: 'session' } }],
    ['always apr_1', { id: 'apr_1', answer: { verb: 'approve', scope: 'always' } }],
    ['deny apr_1', { id: 'apr_1', answer: { verb: 'deny' } }],
    ['deny apr_1 not  now ', { id: 'apr_1', answer: { verb: 'deny', message: 'not  now' } }],
  ])('CL-09 %s', (line, answer) => {
    expect(readAnswer(line)).toEqual(answer)
  })

  it.each(['approve', 'approve apr_1 apr_2', 'Approve apr_1', 'constructor apr_1', 'apr_1'])(
    'CL-09 refuses %s',
    (line) => {
      expect(() => readAnswer(line)).toThrow('no answer')
    },
  )
})
