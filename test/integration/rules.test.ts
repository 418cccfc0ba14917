import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, type TestClient } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { SPELLINGS } from '../policy/commands/spellings.js'

const RULES = `
[[permission.rules]]
decision = "deny"
pattern = "Read(secret.txt)"

[[permission.rules]]
decision = "deny"
pattern = "Delete(keep/**)"

[[permission.rules]]
decision = "allow"
pattern = "Write(out/**)"
`

let host: TestHost
let connection: string
let client: TestClient
let ref: string
beforeAll(async () => {
  host = await startHost({ config: RULES })
  connection = await host.connection({ ceiling: 'full' })
  ref = await host.session(connection, { mode: 'manual' })
  client = await connectClient(host, connection, 'v2 legacy', { session: ref })
  writeFileSync(join(host.workspace, 'secret.txt'), 'needle\n')
  writeFileSync(join(host.workspace, 'open.txt'), 'needle\n')
  symlinkSync('secret.txt', join(host.workspace, 's'))
})
afterAll(async () => {
  await client.close()
  await host.stop()
})

const code = (result: CallResult) => (result._meta?.['kiki/error'] as { code: string } | undefined)?.code
const text = (result: CallResult) => result.content.map((block) => block.text ?? '').join('\n')
let keys = 0
const key = () => ({ idempotency_key: `k${++keys}` })
const version = async () =>
  (await host.api<{ policy_version: number }>('GET', `/api/connections/${connection}`)).policy_version
const rules = async () =>
  (await host.api<{ rules: { pattern: string; from: string }[] }>('GET', '/api/policy/rules')).rules

describe('rules of config.toml', () => {
  it('PO-02 FC-P09 a denied file is refused by its name, through a link, and in what a search finds', async () => {
    for (const path of ['secret.txt', 's', './x/../secret.txt', join(host.workspace, 'secret.txt')]) {
      const refused = await client.call('Read', { path })
      expect(code(refused), path).toBe('permission_denied')
      expect(text(refused)).toContain('config.toml:4')
    }
    const found = text(await client.call('Grep', { pattern: 'needle' }))
    expect(found).toContain('open.txt')
    expect(found).not.toContain('secret.txt')
    expect(text(await client.call('Grep', { pattern: 'needle', output_mode: 'count' }))).not.toContain('secret.txt')
    expect((await client.call('Read', { path: 'open.txt' })).isError).toBeFalsy()
  })

  it('PO-02 FC-P09 no other tool shows it or carries it away', async () => {
    const full = await host.session(connection, { mode: 'full' })
    const call = (name: string, args: object) => client.call(name, { ...args, _kiki: { ...key(), session_ref: full } })
    const edit = { old_string: 'nothing like it', new_string: 'x' }
    for (const refused of [
      await call('Edit', { path: 'secret.txt', ...edit }),
      await call('MultiEdit', { path: 'secret.txt', dry_run: true, edits: [edit] }),
      await call('Write', { path: 's', content: 'x' }),
      await call('Move', { from: 'secret.txt', to: 'open2.txt' }),
      await call('ApplyPatch', { patch: '--- a/secret.txt\n+++ b/secret.txt\n@@ -1 +1 @@\n-x\n+y\n', dry_run: true }),
      await call('ApplyPatch', { patch: '*** Begin Patch\n*** Update File: s\n@@\n-x\n+y\n*** End Patch' }),
      await call('ApplyPatch', { patch: 'diff --git a/secret.txt b/t\nrename from secret.txt\nrename to t\n' }),
      await call('ApplyPatch', { patch: 'diff --git a/secret.txt b/t\ncopy from secret.txt\ncopy to t\n' }),
    ]) {
      expect(code(refused)).toBe('permission_denied')
      expect(text(refused)).not.toContain('needle')
    }
    expect(readFileSync(join(host.workspace, 'secret.txt'), 'utf8')).toBe('needle\n')
  })

  it('PO-02 FI-10 a patch that deletes is bound by rules about Delete', async () => {
    const full = await host.session(connection, { mode: 'full' })
    mkdirSync(join(host.workspace, 'keep'), { recursive: true })
    writeFileSync(join(host.workspace, 'keep/this'), 'x\n')
    const patch = '--- a/keep/this\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n'
    const refused = await client.call('ApplyPatch', { patch, _kiki: { ...key(), session_ref: full } })
    expect([code(refused), text(refused)]).toEqual(['permission_denied', expect.stringContaining('Delete(keep/**)')])
    expect(readFileSync(join(host.workspace, 'keep/this'), 'utf8')).toBe('x\n')
    rmSync(join(host.workspace, 'keep'), { recursive: true })
  })

  it('PO-02 a link that is swapped between the decision and the use reaches no denied file', async () => {
    const link = join(host.workspace, 'swapped')
    symlinkSync('open.txt', link)
    let stop = false
    const swapping = (async () => {
      for (let i = 0; !stop; i++) {
        symlinkSync(i % 2 === 0 ? 'secret.txt' : 'open.txt', `${link}.new`)
        renameSync(`${link}.new`, link)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    writeFileSync(join(host.workspace, 'secret.txt'), 'the secret\n')
    for (let i = 0; i < 300; i++)
      expect(text(await client.call('Read', { path: 'swapped' }))).not.toContain('the secret')
    stop = true
    await swapping
    rmSync(link)
  })

  it('PO-02 a folder with something in it that may not be deleted is not deleted; nothing of it is', async () => {
    mkdirSync(join(host.workspace, 'keep/a'), { recursive: true })
    writeFileSync(join(host.workspace, 'keep/a/b'), '')
    const full = await host.session(connection, { mode: 'full' })
    const refused = await client.call('Delete', {
      path: 'keep',
      recursive: true,
      _kiki: { ...key(), session_ref: full },
    })
    expect(code(refused)).toBe('permission_denied')
    expect(readFileSync(join(host.workspace, 'keep/a/b'), 'utf8')).toBe('')
  })

  it('PO-03 an allow rule runs what manual would ask about', async () => {
    const done = await client.call('Write', { path: 'out/x.txt', content: 'x', _kiki: key() })
    expect(done.isError).toBeFalsy()
    expect(code(await client.call('Write', { path: 'other.txt', content: 'x', _kiki: key() }))).toBe(
      'approval_unavailable',
    )
  })

  it('PO-06 the explanation names the rule or setting that decides', async () => {
    const explain = (tool: string, argument: string) =>
      host.api<{ decision: string; by: string }>('POST', '/api/policy/explain', { session: ref, tool, argument })
    expect(await explain('Read', 's')).toMatchObject({ decision: 'deny', by: 'rule config.toml:4' })
    expect(await explain('Write', 'out/x')).toMatchObject({ decision: 'allow', by: 'rule config.toml:12' })
    expect(await explain('Edit', 'a')).toMatchObject({ decision: 'ask', by: 'session.mode' })
    expect(await explain('Nothing', 'a')).toMatchObject({ decision: 'deny', by: 'connection.tools' })
  })
})

describe('a changed config.toml', () => {
  const save = (config: string) => writeFileSync(join(host.home, 'config.toml'), config)

  it('CF-04 is used without a restart: an added allow leaves the policy version, a deny raises it', async () => {
    const before = await version()
    save(`${RULES}\n[[permission.rules]]\ndecision = "allow"\npattern = "Write(more/**)"\n`)
    expect(await host.api('POST', '/api/policy/reload')).toMatchObject({ rules: 4, cancelled: 0 })
    expect((await client.call('Write', { path: 'more/x.txt', content: 'x', _kiki: key() })).isError).toBeFalsy()
    expect(await version()).toBe(before)
    save(`${RULES}\n[[permission.rules]]\ndecision = "deny"\npattern = "Write(more/**)"\n`)
    // Saving is enough: the host looks at the file by itself.
    while (!(await rules()).some(({ from }) => from === 'config.toml:16') || (await version()) === before);
    expect(code(await client.call('Write', { path: 'more/y.txt', content: 'x', _kiki: key() }))).toBe(
      'permission_denied',
    )
  })

  it('CF-04 FC-C03 a bad one keeps the old settings and says so, with file and line', async () => {
    const before = await rules()
    save(`${RULES}\n[mcp]\ntool_timeout_ms = "abc"\n`)
    await expect(host.api('POST', '/api/policy/reload')).rejects.toThrow(/config\.toml:15/)
    save(`[[permission.rules]]\ndecision = "deny"\npattern = "Read("\n`)
    await expect(host.api('POST', '/api/policy/reload')).rejects.toThrow(/config\.toml:3.*no pattern/)
    expect(await rules()).toEqual(before)
    expect(code(await client.call('Read', { path: 'secret.txt' }))).toBe('permission_denied')
    save(RULES)
  })
})

describe('a bad rule at the start', () => {
  it('PO-05 a bad deny stops the start with its place; a bad allow is left out', async () => {
    const bad = (decision: string) => `[[permission.rules]]\ndecision = "${decision}"\npattern = "Edit()"\n`
    const base = mkdtempSync(join(tmpdir(), 'kiki-rules-'))
    await expect(startHost({ base, config: bad('deny') })).rejects.toThrow(/config\.toml:3:\d+.*brackets/)
    const other = await startHost({ base, config: bad('allow') })
    expect((await other.api<{ rules: unknown[] }>('GET', '/api/policy/rules')).rules).toEqual([])
    await other.stop()
    rmSync(base, { recursive: true })
  })
})

describe('commands', () => {
  it('CC-04 PO-06 CC-02 every spelling of the corpus is explained: its classes, and a refusal for what is denied by default', async () => {
    expect(SPELLINGS.length).toBeGreaterThan(150)
    const grant = { ceiling: 'full', tools: ['shell'], allow_commands: true, network: 'on' }
    const session = await host.session(await host.connection(grant), { mode: 'full' })
    const explain = (argument: string) =>
      host.api<{ decision: string; by: string; command: { classes: string[]; opaque?: string } }>(
        'POST',
        '/api/policy/explain',
        { session, tool: 'Bash', argument: { command: argument } },
      )
    for (const { script, classes, opaque } of SPELLINGS.filter(
      ({ script }) => script !== '' && !script.includes('\0') && script.length <= 100_000,
    )) {
      const { decision, by, command } = await explain(script)
      expect([script, command.classes]).toEqual([script, classes])
      expect([script, command.opaque !== undefined]).toEqual([script, opaque === true])
      const denied = classes.some((one) => one === 'destructive' || one === 'privilege_escalation')
      expect([script, decision]).toEqual([script, denied ? 'deny' : 'allow'])
      if (denied) expect(by).toMatch(/^commands\.classes\.(destructive|privilege_escalation)$/)
    }
  })

  it('PO-04 PO-06 rules about commands: an allow covers all of a script or nothing, a deny any part', async () => {
    const grant = { ceiling: 'full', tools: ['shell'], allow_commands: true }
    const session = await host.session(await host.connection(grant), { mode: 'manual' })
    const rule = (decision: string, pattern: string) =>
      `[[permission.rules]]\ndecision = "${decision}"\npattern = "${pattern}"\n`
    writeFileSync(
      join(host.home, 'config.toml'),
      rule('allow', 'Bash(git log*)') + rule('allow', 'Bash(head *)') + rule('deny', 'Bash(curl *)'),
    )
    await host.api('POST', '/api/policy/reload')
    const decision = async (argument: string) =>
      (await host.api<{ decision: string }>('POST', '/api/policy/explain', { session, tool: 'Bash', argument }))
        .decision
    expect(await decision('git log --oneline | head -3')).toBe('allow')
    expect(await decision('git log && id')).toBe('ask')
    expect(await decision('git log > ~/.bashrc')).toBe('ask')
    expect(await decision('git log $(curl x)')).toBe('deny')
    expect(await decision('env /usr/bin/curl x')).toBe('deny')
    writeFileSync(join(host.home, 'config.toml'), RULES)
    await host.api('POST', '/api/policy/reload')
  })

  it('PO-06 a connection without commands is told by which setting', async () => {
    const answer = await host.api('POST', '/api/policy/explain', { session: ref, tool: 'Bash', argument: 'ls' })
    expect(answer).toMatchObject({ decision: 'deny', by: 'connection.allow_commands' })
  })
})
