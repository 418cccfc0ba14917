import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson, runKiki } from '../helpers/run-kiki.js'

let host: TestHost
let ref: string
let config: string

beforeAll(async () => {
  host = await startHost({
    config:
      '[[permission.rules]]\ndecision = "deny"\npattern = "Edit(secret/**)"\n\n[[permission.rules]]\ndecision = "allow"\npattern = "Edit(src/**)"\n',
  })
  config = join(host.home, 'config.toml')
  const connection = await host.connection({ ceiling: 'full' })
  ref = await host.session(connection, { mode: 'manual' })
})
afterAll(() => host.stop())

const run = (...args: string[]) => runKiki(host.home, args)
const explain = (...args: string[]) => kikiJson(host.home, ['policy', 'explain', '--session', ref, ...args])

describe('kiki policy', { timeout: 60_000 }, () => {
  it('PO-06 explain prints the decision and the row that made it', async () => {
    expect((await explain('Edit', 'src/app.ts')).value).toMatchObject({ decision: 'allow', by: 'rule config.toml:7' })
    expect((await explain('Edit', 'secret/key')).value).toMatchObject({ decision: 'deny', by: 'rule config.toml:3' })
    expect((await explain('Edit', 'other.txt')).value).toMatchObject({
      decision: 'ask',
      by: 'session.mode',
      covers: [`Edit:${host.workspace}`],
    })
    expect((await explain('Read', 'other.txt')).value.decision).toBe('allow')
    const words = await run('policy', 'explain', '--session', ref, 'Edit', 'other.txt')
    expect(words).toMatchObject({ code: 0, err: '' })
    expect(words.out).toMatch(/Decision .*ask: Edit asks you/)
    expect(words.out).toMatch(/Decided by .*session\.mode/)
    expect(words.out).toMatch(new RegExp(`Approving covers .*Edit:${host.workspace}`))
    expect((await run('policy', 'explain', '--session', ref, 'Edit', 'secret/key')).out).toMatch(
      /Decided by .*rule config\.toml:3/,
    )
  })

  it('PO-06 of a command it prints each part with its classes, and what runs it', async () => {
    const grant = { tools: ['files', 'shell'], allow_commands: true, ceiling: 'full' }
    const shell = await host.session(await host.connection(grant), { mode: 'manual' })
    const argv = ['policy', 'explain', '--session', shell, 'Bash', 'git status && env A=1 git push']
    const { code, out } = await run(...argv)
    expect(code).toBe(0)
    expect(out).toMatch(/Decision .*ask: Bash asks you/)
    expect(out).toMatch(/│ git status +│ read_only +│ +│/)
    expect(out).toMatch(/git push .*network_egress.* │ env/)
    const { value } = await kikiJson(host.home, argv)
    expect(value).toMatchObject({ decision: 'ask', command: { classes: expect.arrayContaining(['network_egress']) } })
    expect((await explain('Bash', 'git push')).value).toMatchObject({
      decision: 'deny',
      by: 'connection.allow_commands',
    })
  })

  it('PO-06 all arguments may be given as JSON; what the tool would refuse is refused', async () => {
    const all = JSON.stringify({ from: 'src/a.ts', to: 'secret/a.ts' })
    expect((await explain('Move', all)).value.decision).toBe('ask')
    const wrong = await explain('Edit', '{"path": 1}')
    expect(wrong).toMatchObject({ code: 1, value: { error: { code: 'invalid_arguments' } } })
    expect((await run('policy', 'explain', '--session', 'ext_none', 'Edit')).code).toBe(1)
    expect((await run('policy', 'explain', 'Edit')).code).toBe(2)
  })

  it('PO-06 PO-02 rules shows where each stands', async () => {
    const { out } = await run('policy', 'rules')
    expect(out).toMatch(/deny .*Edit\(secret\/\*\*\) .*every .*every .*config\.toml:3/)
    expect(out).toMatch(/allow .*Edit\(src\/\*\*\) .*config\.toml:7/)
  })

  it('CF-04 reload uses a good file; a bad one changes nothing and names the place', async () => {
    writeFileSync(config, '[[permission.rules]]\ndecision = "deny"\npattern = "Edit()"\n')
    const bad = await run('reload')
    expect([bad.code, bad.out]).toEqual([1, ''])
    expect(bad.err).toContain(`${config}:3:1: the brackets after Edit are empty`)
    expect((await explain('Edit', 'secret/key')).value.decision).toBe('deny')
    writeFileSync(
      config,
      '[log]\nlevel = "debug"\n\n[[permission.rules]]\ndecision = "allow"\npattern = "Edit(docs/**)"\n',
    )
    const good = await run('reload')
    expect(good).toMatchObject({ code: 0, err: '' })
    expect(good.out).toBe(
      'config.toml was read again, with 1 rule. No unfinished call had to be cancelled. A restart is needed for: log.\n',
    )
    expect((await explain('Edit', 'docs/a.md')).value).toMatchObject({ decision: 'allow', by: 'rule config.toml:6' })
    expect((await explain('Edit', 'secret/key')).value.decision).toBe('ask')
  })
})
