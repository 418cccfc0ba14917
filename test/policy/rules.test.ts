import { homedir } from 'node:os'
import { describe, expect, it } from 'vitest'
import { decide } from '../../src/policy/decide.js'
import type { DecisionKind, Mode } from '../../src/policy/modes.js'
import { type Rule, readRule, ruleMatches, type Subject } from '../../src/policy/rules.js'

const argumentsOf = (tool: string) =>
  tool === 'Bash'
    ? ('command' as const)
    : tool === 'Undo'
      ? ('none' as const)
      : /^[A-Z]/.test(tool)
        ? ('paths' as const)
        : undefined

function rule(decision: DecisionKind, pattern: string, fields: { connection?: string; workspace?: string } = {}): Rule {
  const read = readRule({ decision, pattern, ...fields }, 'config.toml:1', argumentsOf)
  if ('problem' in read) throw new Error(read.problem)
  return read
}
const subject = (tool: string, path: string, fields: Partial<Subject> = {}): Subject => ({
  tool,
  connection: { id: 'client_1', name: 'laptop' },
  workspace: '/ws',
  targets: [{ given: path, real: path }],
  ...fields,
})

describe('patterns', () => {
  it.each([
    ['Edit', 'Edit', '/ws/a', true],
    ['Edit', 'Write', '/ws/a', false],
    ['*', 'Write', '/ws/a', true],
    ['**', 'mcp__x__y', '/ws/a', true],
    ['mcp__x__*', 'mcp__x__read', '/ws/a', true],
    ['mcp__x__*', 'mcp__xx__read', '/ws/a', false],
    ['Edit(src/**)', 'Edit', '/ws/src/a/b.ts', true],
    ['Edit(src/**)', 'Edit', '/ws/srcs/b.ts', false],
    ['Edit(src/)', 'Edit', '/ws/src/b.ts', true],
    ['Edit(./src/*.ts)', 'Edit', '/ws/src/b.ts', true],
    ['Edit(./src/*.ts)', 'Edit', '/ws/src/a/b.ts', false],
    ['Edit(*.md)', 'Edit', '/ws/docs/deep/x.md', true],
    ['Edit(.env)', 'Edit', '/ws/.env', true],
    ['Edit(.env)', 'Edit', '/ws/.env.local', false],
    ['Read(~/.ssh/**)', 'Read', `${homedir()}/.ssh/id_rsa`, true],
    ['Read(~/.ssh/**)', 'Read', `${homedir()}/.sshx/id_rsa`, false],
    ['Read(/etc/**)', 'Read', '/etc/passwd', true],
    ['Read(/etc/**)', 'Read', '/ws/etc/passwd', false],
    ['Read(!a)', 'Read', '/ws/b', false],
  ])('PO-02 %s on %s %s: %s', (pattern, tool, path, matches) => {
    for (const decision of ['allow', 'ask', 'deny'] as const)
      expect(ruleMatches(rule(decision, pattern), subject(tool, path))).toBe(matches)
  })

  it('PO-02 an ask or a deny includes what lies in the folder that it names, an allow means exactly what it says', () => {
    for (const [pattern, path] of [
      ['Edit(src)', '/ws/src/b.ts'],
      ['Edit(/ws/*)', '/ws/sub/b.ts'],
    ] as const) {
      const edit = subject('Edit', path)
      expect(ruleMatches(rule('deny', pattern), edit)).toBe(true)
      expect(ruleMatches(rule('ask', pattern), edit)).toBe(true)
      expect(ruleMatches(rule('allow', pattern), edit)).toBe(false)
    }
  })

  it('PO-02 a rule may be for one connection, by id or name, and for one workspace with what lies in it', () => {
    const edit = subject('Edit', '/ws/a')
    expect(ruleMatches(rule('deny', 'Edit', { connection: 'client_1' }), edit)).toBe(true)
    expect(ruleMatches(rule('deny', 'Edit', { connection: 'laptop' }), edit)).toBe(true)
    expect(ruleMatches(rule('deny', 'Edit', { connection: 'phone' }), edit)).toBe(false)
    expect(ruleMatches(rule('deny', 'Edit', { workspace: '/ws' }), edit)).toBe(true)
    expect(ruleMatches(rule('deny', 'Edit', { workspace: '/w' }), edit)).toBe(false)
  })

  it('PO-02 FC-P09 an allow needs every spelling of every place; a deny needs one', () => {
    const link = subject('Read', '/ws/s', { targets: [{ given: '/ws/s', real: '/ws/secret.txt' }] })
    expect(ruleMatches(rule('deny', 'Read(secret.txt)'), link)).toBe(true)
    expect(ruleMatches(rule('deny', 'Read(s)'), link)).toBe(true)
    expect(ruleMatches(rule('allow', 'Read(s)'), link)).toBe(false)
    const move = subject('Move', '', {
      targets: [
        { given: '/ws/a/x', real: '/ws/a/x' },
        { given: '/ws/b/x', real: '/ws/b/x' },
      ],
    })
    expect(ruleMatches(rule('allow', 'Move(a/**)'), move)).toBe(false)
    expect(ruleMatches(rule('ask', 'Move(a/**)'), move)).toBe(true)
  })

  it('PO-02 a folder that is deleted or moved is meant by rules about what lies in it', () => {
    const folder = subject('Delete', '', { targets: [{ given: '/ws/a', real: '/ws/a', tree: true }] })
    expect(ruleMatches(rule('deny', 'Delete(a/b/secret)'), folder)).toBe(true)
    expect(ruleMatches(rule('deny', 'Delete(c/secret)'), folder)).toBe(false)
    expect(ruleMatches(rule('allow', 'Delete(a/b/secret)'), folder)).toBe(false)
  })

  it('PO-02 FC-P09 a deny about reading binds whatever shows or carries content, one about writing whatever changes; an allow only its tool', () => {
    const move = subject('Move', '/ws/.env', { countsAs: ['Read', 'Write'] })
    expect(ruleMatches(rule('deny', 'Read(.env)'), move)).toBe(true)
    expect(ruleMatches(rule('ask', 'Write(.env)'), move)).toBe(true)
    expect(ruleMatches(rule('allow', 'Read(.env)'), move)).toBe(false)
    expect(ruleMatches(rule('deny', 'Read'), move)).toBe(false)
  })

  it('PO-02 no pattern and no path makes the host wait: matching takes time in proportion to both', () => {
    const long = subject('Read', `/ws/${'testfixture'.repeat(20_000)}`)
    const began = performance.now()
    expect(ruleMatches(rule('deny', 'Read(*src*test*fixture*.json)'), long)).toBe(false)
    expect(ruleMatches(rule('deny', `Read(${'*a'.repeat(40)})`), subject('Read', `/ws/${'a'.repeat(4000)}b`))).toBe(
      false,
    )
    expect(
      ruleMatches(rule('deny', `Read(${'**/a/'.repeat(30)}b)`), subject('Read', `/ws/${'a/'.repeat(2000)}c`)),
    ).toBe(false)
    expect(performance.now() - began).toBeLessThan(5000)
  })

  it.each(['', 'Edit(', 'Edit)', 'Edit()', 'Ed it', '*(x)', 'mcp__a__b(x)', 'Undo(x)', 'nothing(x)', 'Edit(a) b'])(
    'PO-05 "%s" is told to be no pattern',
    (pattern) => {
      expect(readRule({ decision: 'deny', pattern }, 'x', argumentsOf)).toMatchObject({ problem: expect.any(String) })
    },
  )
})

describe('order', () => {
  const decided = (
    rules: Rule[],
    fields: {
      mode?: Mode
      ceiling?: Mode
      effect?: 'read' | 'write' | 'execute'
      guard?: string
      approved?: boolean
    } = {},
  ) =>
    decide({
      tool: { name: 'Edit', effect: fields.effect ?? 'write' },
      ceiling: fields.ceiling ?? 'full',
      sessionMode: fields.mode ?? 'manual',
      rules,
      subject: subject('Edit', '/ws/a'),
      ...(fields.guard === undefined ? {} : { guard: fields.guard }),
      ...(fields.approved === undefined ? {} : { approvedForSession: fields.approved }),
    })
  const deny = rule('deny', 'Edit')
  const ask = rule('ask', 'Edit')
  const allow = rule('allow', 'Edit')

  it('PO-03 a read-only ceiling stands above every rule and approval', () => {
    const decision = decided([allow], { ceiling: 'read-only', mode: 'full', approved: true })
    expect(decision).toMatchObject({ kind: 'deny', by: 'connection.ceiling' })
  })
  it('PO-03 deny stands above guards, approvals, ask and allow', () => {
    const decision = decided([allow, ask, deny], { mode: 'full', approved: true, guard: 'a hook' })
    expect(decision).toMatchObject({ kind: 'deny', by: 'rule config.toml:1', code: 'permission_denied' })
  })
  it('PO-03 a guard asks whatever was approved or allowed', () => {
    expect(decided([allow], { mode: 'full', approved: true, guard: 'a hook' })).toMatchObject({
      kind: 'ask',
      by: 'guard',
    })
  })
  it('PO-03 an approval for the session stands above ask rules, those above allow rules, those above the mode', () => {
    expect(decided([ask], { approved: true })).toMatchObject({ kind: 'allow', by: 'session approval' })
    expect(decided([allow, ask], { mode: 'full' })).toMatchObject({ kind: 'ask', by: 'rule config.toml:1' })
    expect(decided([allow])).toMatchObject({ kind: 'allow', by: 'rule config.toml:1' })
    expect(decided([])).toMatchObject({ kind: 'ask', by: 'session.mode' })
  })
  it('PO-03 reads are asked about and denied by rules only', () => {
    expect(decided([], { effect: 'read' }).kind).toBe('allow')
    expect(decided([ask], { effect: 'read', mode: 'full' }).kind).toBe('ask')
    expect(decided([deny], { effect: 'read', mode: 'full' }).kind).toBe('deny')
  })
  it.each([
    ['read-only', 'write', 'deny'],
    ['manual', 'write', 'ask'],
    ['auto-edit', 'write', 'allow'],
    ['auto-edit', 'execute', 'ask'],
    ['full', 'execute', 'allow'],
  ] as const)('PO-01 in %s a %s is decided %s; the lesser of ceiling and mode counts', (mode, effect, kind) => {
    expect(decided([], { mode, effect }).kind).toBe(kind)
    expect(decided([], { ceiling: mode, mode: 'full', effect }).kind).toBe(kind)
  })

  it('CC-02 a class that is denied denies the script, one that asks asks, and an allow needs all of them', () => {
    const of = (found: string[], classes: Record<string, DecisionKind>, mode: Mode = 'full') =>
      decide({
        tool: { name: 'Bash', effect: 'execute' },
        ceiling: 'full',
        sessionMode: mode,
        classes: { found, decided: classes },
      }).kind
    expect(of(['file_write', 'destructive'], { destructive: 'deny' })).toBe('deny')
    expect(of(['file_write', 'network_egress'], { network_egress: 'ask' })).toBe('ask')
    expect(of(['file_write', 'network_egress'], { network_egress: 'allow' }, 'manual')).toBe('ask')
    expect(of(['network_egress'], { network_egress: 'allow' }, 'manual')).toBe('allow')
    expect(of(['read_only'], {}, 'read-only')).toBe('allow')
    expect(of(['read_only', 'unknown'], {}, 'read-only')).toBe('deny')
  })
})

describe('where a file system takes other spellings for the same file', () => {
  const target = (path: string, fields: object = {}) => ({
    targets: [{ given: path, real: path, anySpelling: true, ...fields }],
  })

  it('PA-04 FC-P14 a deny or an ask means every spelling, an allow only its own', () => {
    const seen = (decision: DecisionKind, pattern: string, path: string, fields: object = {}) =>
      ruleMatches(rule(decision, pattern), subject('Read', path, target(path, fields)))
    for (const decision of ['deny', 'ask'] as const) {
      expect(seen(decision, 'Read(Secret/**)', '/ws/sECRET/a')).toBe(true)
      expect(seen(decision, 'Read(caf\u00e9.txt)', '/ws/CAFE\u0301.TXT')).toBe(true)
      expect(seen(decision, 'Read([a-c]x)', '/ws/BX')).toBe(true)
      expect(seen(decision, 'Read(~/.SSH/**)', `${homedir().toUpperCase()}/.ssh/id_rsa`)).toBe(true)
      expect(seen(decision, 'Read(Deep/x)', '/ws/DEEP', { tree: true })).toBe(true)
      expect(seen(decision, 'Read(Secret/**)', '/ws/secrets/a')).toBe(false)
      expect(seen(decision, 'Read(Secret/**)', '/ws/sECRET/a', { anySpelling: false })).toBe(false)
    }
    expect(seen('allow', 'Read(Secret/**)', '/ws/sECRET/a')).toBe(false)
    expect(seen('allow', 'Read(Secret/**)', '/ws/Secret/a')).toBe(true)
  })
})
