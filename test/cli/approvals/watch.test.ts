import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connectClient, meta, type TestClient, textOf } from '../../helpers/clients.js'
import { MAIN, startHost, type TestHost } from '../../helpers/host.js'
import { HAS_PTY, openTerminal, type Terminal, type TerminalOptions } from '../../helpers/terminal.js'

if (!HAS_PTY) console.warn('skipped: kiki approvals watch in a terminal, because there is no python3')

let host: TestHost
let ref: string
let client: TestClient
let connection: string
const terminals: Terminal[] = []

beforeAll(async () => {
  host = await startHost()
})
afterAll(() => host.stop())
beforeEach(async () => {
  connection = await host.connection({ ceiling: 'full' }, 'Desk \u001b[31mred\u202e\u009b2J')
  ref = await host.session(connection, { mode: 'manual', title: 'Tidy \u001b]2;pwned\u0007\n\u2028up' })
  client = await connectClient(host, connection, 'v1', { session: ref, args: ['--no-start'] })
  writeFileSync(join(host.workspace, 'a.txt'), 'one\ntwo\nthree\n')
  return async () => {
    await client.close()
    for (const terminal of terminals.splice(0)) await terminal.close()
    for (const { id } of await waiting()) await host.api('POST', `/api/approvals/${id}/deny`)
  }
})

async function watch(options?: TerminalOptions): Promise<Terminal> {
  const terminal = await openTerminal([process.execPath, MAIN, 'approvals', 'watch', '--home', host.home], options)
  terminals.push(terminal)
  await terminal.until(/● taking questions/)
  return terminal
}

const waiting = async () =>
  (await host.api<{ approvals: { id: string; operation: string }[] }>('GET', '/api/approvals')).approvals
const content = (name = 'a.txt') => readFileSync(join(host.workspace, name), 'utf8')
let keys = 0
/** Answered by its receipt at once. */
const edit = async (fields: Record<string, unknown> = {}) => {
  const args = { path: 'a.txt', old_string: 'two', new_string: '2', ...fields }
  const result = await client.call('Edit', { ...args, _kiki: { idempotency_key: `k${++keys}`, wait_ms: 0 } })
  return meta<{ operation_id: string }>(result, 'kiki/operation').operation_id
}
const result = (operation: string) =>
  client.call('kiki_operation', { action: 'wait', operation_id: operation, wait_ms: 20_000 })

/** Presses the key of an answer and confirms it once that is offered. */
async function answer(terminal: Terminal, key: string): Promise<void> {
  terminal.type(key)
  await terminal.until(/Enter (approves|denies)/)
  terminal.type('\r')
}

describe.runIf(HAS_PTY)('kiki approvals watch in a terminal', { timeout: 60_000 }, () => {
  it('CL-09 AP-03 AP-10 GU-32 shows exactly what will change, rings, and approves', async () => {
    const terminal = await watch({ columns: 99, rows: 60 })
    expect(terminal.screen.text()).toContain('Nothing waits for you.')
    const operation = await edit({ new_string: '\u202etwice\u001b[2Jtwo\r\n\u{e0041}2' })
    const text = await terminal.until(/Your answer[\s\S]*Id {9}apr_/)
    const flat = text.replaceAll(/\s+/g, ' ')
    expect(flat).toContain(`Client Desk \\u{1b}[31mred\\u{202e}\\u{9b}2J (old-client 1.0.0), connection ${connection}`)
    expect(flat).toContain(`“Tidy \\u{1b}]2;pwned\\u{7}\\n\\u{2028}up” ${ref}`)
    expect(text).toContain(`Workspace  ${host.workspace}`)
    expect(text).toContain('Effect     write')
    expect(flat).toMatch(/Asks session\.mode is manual: [^(]*\(session\.mode\)/)
    // The file has LF line ends, and an edit keeps them: so does what is shown.
    for (const line of ['-two', '+\\u{202e}twice\\u{1b}[2Jtwo', '+\\u{e0041}2']) expect(text).toContain(`│ ${line}\n`)
    for (const line of ['two', '\\u{202e}twice\\u{1b}[2Jtwo\\u{d}', '\\u{e0041}2'])
      expect(text).toContain(`│ ${line}\n`)
    expect(text).toContain(`session: Edit:${host.workspace}`)
    expect(text).toContain(`always: allow Edit(${host.workspace}/*)`)
    expect(terminal.screen.bells()).toBe(1)
    expect(terminal.screen.title()).toBe('(1) Kiki approvals')

    await answer(terminal, 'a')
    await terminal.until(/Edit a\.txt was approved once by the owner\./)
    expect(terminal.screen.title()).toBe('Kiki approvals')
    expect((await result(operation)).isError).not.toBe(true)
    expect(content()).toBe('one\n\u202etwice\u001b[2Jtwo\n\u{e0041}2\nthree\n')
    expect(terminal.screen.foreign).toEqual([])
    terminal.type('q')
    expect(await terminal.ended).toBe(0)
  })

  it('CL-09 AP-04 denies with a message that the client receives, and nothing runs', async () => {
    const terminal = await watch({ columns: 60, rows: 16 })
    const operation = await edit()
    await terminal.until(/Edit {2}a\.txt/)
    terminal.type('m')
    await terminal.until(/Enter denies/)
    terminal.type('Use thé other\u007f\u007f\u007f\u007f\u007fcopy 😀')
    await terminal.until(/Use thé copy 😀█/)
    terminal.type('\r')
    await terminal.until(/was denied by the owner: Use thé copy 😀/)
    expect(textOf(await result(operation))).toContain('They say: “Use thé copy 😀”')
    expect(content()).toBe('one\ntwo\nthree\n')
  })

  it('CL-09 AP-04 the kind is approved for the session only after its extent was shown', async () => {
    const terminal = await watch()
    const first = await edit()
    await terminal.until(/Your answer/)
    terminal.type('s')
    const text = await terminal.until(/Enter approves/)
    expect(text).toMatch(new RegExp(`does not ask for:\\s+• Edit:${host.workspace}\\n`))
    terminal.type('\r')
    await terminal.until(/approved for its session by the owner/)
    expect((await result(first)).isError).not.toBe(true)
    const second = await client.call('Edit', {
      path: 'a.txt',
      old_string: 'three',
      new_string: '3',
      _kiki: { idempotency_key: `k${++keys}` },
    })
    expect(second.isError).not.toBe(true)
    expect(content()).toBe('one\n2\n3\n')
  })

  it('CL-09 AP-02 a watcher that closes in between changes nothing; the next one has the question', async () => {
    const first = await watch()
    const operation = await edit()
    await first.until(/Your answer/)
    first.type('\u0003')
    expect(await first.ended).toBe(0)
    expect(await waiting()).toMatchObject([{ operation }])
    expect(content()).toBe('one\ntwo\nthree\n')
    const second = await watch()
    await second.until(/Your answer/)
    await answer(second, 'a')
    expect((await result(operation)).isError).not.toBe(true)
    expect(content()).toBe('one\n2\nthree\n')
  })

  it('CL-09 AP-02 a host that is killed and restarted in between changes nothing, and is waited for', async () => {
    const terminal = await watch()
    const operation = await edit()
    await terminal.until(/Your answer/)
    await host.kill()
    await terminal.until(/○ host away/)
    terminal.type('a')
    await terminal.until(/nothing can be answered now/)
    await host.restart()
    await terminal.until((text) => text.includes('● taking questions') && text.includes('The host is back.'))
    expect(await waiting()).toMatchObject([{ operation }])
    expect(content()).toBe('one\ntwo\nthree\n')
    await answer(terminal, 'a')
    await terminal.until(/was approved once/)
    expect((await result(operation)).isError).not.toBe(true)
    expect(content()).toBe('one\n2\nthree\n')
  })

  it('CL-09 AP-06 an answer from elsewhere takes the question away at once, and no other one gets its keys', async () => {
    const terminal = await watch()
    const first = await edit()
    await edit({ old_string: 'three' })
    await terminal.until(/2 waiting/)
    const [question] = await waiting()
    await host.api('POST', `/api/approvals/${question?.id}/deny`, { message: 'from the page' })
    const text = await terminal.until(/1 waiting/)
    expect(text).toContain('Edit a.txt was denied by the owner: from the page (not from here).')
    expect(text).toContain('Choose a question with ↑ or ↓.')
    terminal.type('d')
    await terminal.until(/No question is chosen/)
    expect(await waiting()).toHaveLength(1)
    expect(textOf(await result(first))).toContain('from the page')
  })

  it('CL-09 AP-06 a question that is cancelled goes away, and it is said', async () => {
    const terminal = await watch()
    const operation = await edit()
    await terminal.until(/1 waiting/)
    await client.call('kiki_operation', { action: 'cancel', operation_id: operation })
    expect(await terminal.until(/cancelled before anybody answered/)).toContain('Nothing waits for you.')
  })

  it('GU-32 a yes is for the change that was shown: a file that changed since is shown again first', async () => {
    const terminal = await watch()
    const operation = await edit()
    await terminal.until(/│ -two/)
    writeFileSync(join(host.workspace, 'a.txt'), 'zero\none\ntwo\n')
    await answer(terminal, 'a')
    const text = await terminal.until(/Not answered: it would change something else by now/)
    expect(text).toContain('│  zero\n')
    expect(await waiting()).toMatchObject([{ operation }])
    await answer(terminal, 'a')
    await result(operation)
    expect(content()).toBe('zero\none\n2\n')
  })

  it('CL-09 keys that were typed ahead or pasted answer nothing', async () => {
    const terminal = await watch()
    await edit()
    await terminal.until(/Your answer/)
    terminal.type('\u001b[200~a\rd\r\u001b[201~?')
    await terminal.until(/begins each line that the client sent/)
    terminal.type('x')
    await terminal.until(/Your answer/)
    terminal.type('a\r')
    await terminal.until(/Enter approves/)
    terminal.type('x')
    await terminal.until((text) => !text.includes('Approve once:'))
    expect(await waiting()).toHaveLength(1)
    expect(content()).toBe('one\ntwo\nthree\n')
  })

  it('CL-09 AP-03 everything is in reach on the smallest screen and after resizing', async () => {
    const terminal = await watch({ columns: 60, rows: 16 })
    const words = Array.from({ length: 120 }, (_, index) => `word-${index}-`)
    await edit({ new_string: `${words.join('\n')}\n${words.join('')}` })
    let text = await terminal.until(/lines 1–\d+ of \d+/)
    let seen = text
    while (!/of \d+ · end/.test(text)) {
      const before = text
      terminal.type(' ')
      text = await terminal.until((now) => now !== before && /lines/.test(now))
      seen += `\n${text}`
    }
    for (const word of words) expect(seen.split(`│ ${word}\n`).length).toBeGreaterThanOrEqual(2)
    // The long line, put together again from the pieces that it was broken into.
    expect(seen.replaceAll(/\n {2}┊ /g, '')).toContain(words.slice(0, 10).join(''))
    for (const line of seen.split('\n')) expect([...line].length).toBeLessThanOrEqual(60)
    terminal.resize(50, 12)
    await terminal.until(/needs 60×16\. 1 waiting/)
    terminal.resize(130, 30)
    await terminal.until((now) => now.includes('▌') && now.includes('│ ') && now.split('\n').length === 30)
    expect(terminal.screen.foreign).toEqual([])
  })

  it('CL-09 NO_COLOR is respected, and colours are there without it', async () => {
    const coloured = /\p{Cc}\[(?:\d+;)*(?:3[0-7]|9[0-7])m/u
    const [plain, colours] = [await watch({ env: { NO_COLOR: '1' } }), await watch()]
    await edit()
    for (const terminal of [plain, colours]) await terminal.until(/│ -two/)
    expect(plain.screen.raw()).not.toMatch(coloured)
    expect(colours.screen.raw()).toMatch(coloured)
  })

  it.each([
    ['q', (terminal: Terminal) => terminal.type('q'), 0],
    ['Ctrl-C', (terminal: Terminal) => terminal.type('\u0003'), 0],
    ['SIGTERM', (terminal: Terminal) => void process.kill(terminal.pid, 'SIGTERM'), 0],
    ['SIGHUP', (terminal: Terminal) => void process.kill(terminal.pid, 'SIGHUP'), 0],
  ])('CL-09 the terminal is given back: %s', async (_, end, code) => {
    const terminal = await watch()
    expect([...terminal.screen.modes].sort()).toEqual([1049, 2004].sort())
    end(terminal)
    expect(await terminal.ended).toBe(code)
    expect([...terminal.screen.modes].sort()).toEqual([25, 7].sort())
  })

  it('CL-09 the terminal is given back after a fault, and the fault is told', async () => {
    const fixture = join(import.meta.dirname, '../../fixtures/crash-screen.mjs')
    const terminal = await openTerminal([process.execPath, fixture])
    await terminal.until(/ready/)
    terminal.type('x')
    expect(await terminal.ended).toBe(1)
    expect([...terminal.screen.modes].sort()).toEqual([25, 7].sort())
    expect(terminal.screen.raw().split('\u001b[?1049l')[1]).toContain('Error: a fault')
  })
})
