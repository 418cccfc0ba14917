import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { createScripts, scriptOf } from '../../src/calls/command.js'
import { judge } from '../../src/calls/judge.js'
import { workspaceOf } from '../../src/calls/terms.js'
import { configSchema } from '../../src/config/schema.js'
import { readRule } from '../../src/policy/rules.js'
import { findNative } from '../../src/tools/catalog.js'
import { bash as BASH } from '../../src/tools/shell/bash.js'
import type { Tool } from '../../src/tools/tool.js'
import { createHomeFence } from '../../src/workspace/fence.js'
import { walk } from '../../src/workspace/walk.js'
import { type ApprovalCore, openApprovals } from '../approvals/harness.js'
import { caselessDisk, noCaselessDisk } from '../helpers/caseless-disk.js'

let core: ApprovalCore
beforeEach(async () => {
  core = await openApprovals()
})
afterEach(() => core.close())

const scripts = createScripts()

/** What the gate decides about a command in a session of this mode. */
async function judged(command: string, mode: 'manual' | 'full' = 'manual', commands: object = {}) {
  const tool = BASH as Omit<Tool, 'run'>
  const { grant } = core.connection
  const connection = { ...core.connection, grant: { ...grant, tools: ['shell'], allow_commands: true } }
  const session = { ...core.session, mode }
  const args = { command }
  const deps = { ...core, config: () => configSchema.parse({ commands }) }
  return judge(deps, {
    ...{ tool, args, connection, session, profile: undefined },
    script: await scriptOf(scripts, tool, args),
    workspace: workspaceOf({ fence: createHomeFence(core.base) }, connection, { ...session, workspace: '/' }),
  })
}

it('CC-03 the classes of a command are part of the decision, and are stored with the operation', async () => {
  const { decision, question } = await judged('git status && rm -rf dist')
  expect(decision).toMatchObject({ kind: 'ask', classes: ['read_only', 'file_delete'] })
  if (question === undefined) throw new Error('it asks')
  core.approvals.consumers.add()
  const request = { ...core.request('k'), tool: 'Bash', effect: 'execute', decision }
  const claim = await core.operations.claim({ ...request, ask: (row) => core.approvals.ask(row, question).id })
  if (claim.kind !== 'new') throw new Error('it is new')
  const stored = JSON.parse(core.store.operations.get(claim.live.id)?.decision ?? '{}') as unknown
  expect(stored).toMatchObject({ kind: 'ask', by: 'session.mode', classes: ['read_only', 'file_delete'] })
})

it('AP-04 of a command the kinds are program and subcommand of each part; one that hides a part has none', async () => {
  const kinds = async (command: string) => (await judged(command)).question?.kinds.map(({ key }) => key)
  expect(await kinds('git status -s | head -3')).toEqual(['Bash(git status)', 'Bash(head)'])
  expect(await kinds('npm run build')).toEqual(['Bash(npm run)'])
  expect(await kinds('eval "$x"')).toEqual([])
  expect(await kinds('git log > out.txt')).toEqual([])
  expect(await kinds('X=1 git log')).toEqual([])
})

it('CC-02 what is denied by class is denied in full, and non_interactive says what becomes of an ask that nobody can answer', async () => {
  expect((await judged('rm -rf /', 'full')).decision).toMatchObject({
    kind: 'deny',
    by: 'commands.classes.destructive',
  })
  expect((await judged('sudo id', 'full')).decision.kind).toBe('deny')
  expect((await judged('curl x', 'full', { classes: { network_egress: 'ask' } })).decision.kind).toBe('ask')
  const allowed = { non_interactive: 'allow' }
  expect((await judged('npm test', 'manual', allowed)).decision).toMatchObject({
    kind: 'allow',
    by: 'commands.non_interactive',
  })
  const leave = core.approvals.consumers.add()
  expect((await judged('npm test', 'manual', allowed)).decision.kind).toBe('ask')
  leave()
  expect((await judged('sudo npm test', 'manual', allowed)).decision.kind).toBe('deny')
})

it('PO-04 several allow rules together may cover a script', async () => {
  const allow = (pattern: string) => {
    const rule = readRule({ decision: 'allow', pattern }, pattern, () => 'command')
    if ('problem' in rule) throw new Error(rule.problem)
    return rule
  }
  core.rules.use([allow('Bash(git log*)'), allow('Bash(head *)')])
  expect((await judged('git log | head -3')).decision).toMatchObject({ kind: 'allow', by: 'rule Bash(git log*)' })
  expect((await judged('git log | tail -3')).decision.kind).toBe('ask')
})

/** What the gate decides in a session of mode `full` about a tool that names files, and the workspace that it leaves. */
function judgedFiles(name: string, args: object, root: string, dirs: string[] = []) {
  const tool = findNative(name)
  if (tool === undefined) throw new Error(`there is no ${name}`)
  const connection = { ...core.connection, grant: { ...core.connection.grant, ceiling: 'full' as const, dirs } }
  const session = { ...core.session, mode: 'full' as const, workspace: root }
  const workspace = workspaceOf({ fence: createHomeFence(core.base) }, connection, session)
  const deps = { ...core, config: () => configSchema.parse({}) }
  const input = { tool, args: tool.input.parse(args), connection, session, profile: undefined, script: undefined }
  return { ...judge(deps, { ...input, workspace }), workspace }
}

function withFolder(use: (root: string) => void): void {
  const root = realpathSync.native(mkdtempSync(join(tmpdir(), 'kiki-judge-')))
  try {
    use(root)
  } finally {
    rmSync(root, { recursive: true })
  }
}

it('PA-05 PA-06 FC-P01 a name that is swapped after the decision leads to nothing guarded and to no secret', () => {
  withFolder((root) => {
    for (const folder of ['d', '.git/hooks']) mkdirSync(join(root, folder), { recursive: true })
    writeFileSync(join(root, '.env'), 'TOKEN=1')
    writeFileSync(join(root, 'd/a.txt'), 'a')
    const writing = judgedFiles('Write', { path: 'd/config', content: '' }, root)
    const reading = judgedFiles('Read', { path: 'd/a.txt' }, root)
    expect([writing.decision.kind, reading.decision.kind]).toEqual(['allow', 'allow'])
    walk(writing.workspace, 'd/config').close()
    walk(reading.workspace, 'd/a.txt').close()
    renameSync(join(root, 'd'), join(root, 'e'))
    symlinkSync('.git', join(root, 'd'))
    expect(() => walk(writing.workspace, 'd/config')).toThrow(/always asked about/)
    rmSync(join(root, 'd'))
    mkdirSync(join(root, 'd'))
    symlinkSync('../.env', join(root, 'd/a.txt'))
    expect(() => walk(reading.workspace, 'd/a.txt')).toThrow(/looks like a secret/)
  })
})

it('PA-05 what was asked about may be changed, and nothing guarded beside it', () => {
  withFolder((root) => {
    mkdirSync(join(root, 'repo/.git/hooks'), { recursive: true })
    const { decision, workspace } = judgedFiles('Delete', { path: 'repo', recursive: true }, root)
    expect(decision).toMatchObject({ kind: 'ask', by: 'guard' })
    walk(workspace, 'repo/.git/hooks/x').close()
    expect(() => walk(workspace, '.envrc')).toThrow(/always asked about/)
  })
})

it("PA-05 git's folders are guarded by where they are too: a separate one, and those of a linked worktree", () => {
  withFolder((root) => {
    const git = (...args: string[]) => execFileSync('git', args, { cwd: root, stdio: 'ignore' })
    git('init', '--separate-git-dir', join(root, 'meta'), join(root, 'ws'))
    git('-C', 'ws', '-c', 'user.name=T', '-c', 'user.email=t@example.org', 'commit', '--allow-empty', '-m', 'first')
    git('-C', 'ws', 'worktree', 'add', join(root, 'linked'))
    const kind = (path: string, folder: string) =>
      judgedFiles('Write', { path: join(root, path), content: '' }, join(root, folder), [root]).decision.kind
    expect(kind('meta/hooks/pre-commit', 'ws')).toBe('ask')
    expect(kind('meta/config', 'linked')).toBe('ask')
    expect(kind('meta/worktrees/linked/config.worktree', 'linked')).toBe('ask')
    expect(kind('metadata/config', 'ws')).toBe('allow')
  })
})

it('PA-05 a folder is looked through at any depth, and one that is too large for that is asked about', () => {
  withFolder((root) => {
    const deep = join(root, 'a/b/c/d/e/f/g/h/i/j')
    mkdirSync(join(deep, '.husky'), { recursive: true })
    const moved = judgedFiles('Move', { from: 'a', to: 'z' }, root)
    expect(moved.decision).toMatchObject({ kind: 'ask', reason: expect.stringContaining('/j/.husky') })
    rmSync(join(deep, '.husky'), { recursive: true })
    expect(judgedFiles('Move', { from: 'a', to: 'z' }, root).decision.kind).toBe('allow')
    for (let n = 0; n <= 20_000; n++) writeFileSync(join(deep, String(n)), '')
    expect(judgedFiles('Move', { from: 'a', to: 'z' }, root).decision).toMatchObject({
      kind: 'ask',
      reason: expect.stringContaining('More than 20000 entries'),
    })
  })
})

const noDisk = noCaselessDisk()
if (noDisk !== undefined) console.warn(`skipped: rules on a disk without letter cases, because ${noDisk}`)

it.skipIf(noDisk !== undefined)(
  'PA-04 FC-P14 on a disk without letter cases a deny or an ask means every spelling',
  () => {
    const rule = (decision: 'allow' | 'ask' | 'deny', pattern: string) => {
      const read = readRule({ decision, pattern }, pattern, () => 'paths')
      if ('problem' in read) throw new Error(read.problem)
      return read
    }
    core.rules.use([
      rule('deny', 'Read(secret.txt)'),
      rule('deny', 'Write(Private/**)'),
      rule('ask', 'Write(asked/*.md)'),
    ])
    const disk = caselessDisk()
    try {
      for (const folder of ['private', 'asked']) mkdirSync(join(disk.root, folder))
      writeFileSync(join(disk.root, 'Secret.txt'), 'secret')
      const kind = (name: string, args: object) => judgedFiles(name, args, disk.root).decision.kind
      for (const path of ['secret.txt', 'SECRET.TXT', 'Secret.txt']) expect(kind('Read', { path }), path).toBe('deny')
      expect(kind('Write', { path: 'PRIVATE/new.txt', content: '' })).toBe('deny')
      expect(kind('Delete', { path: 'PRIVATE', recursive: true })).toBe('deny')
      expect(kind('Write', { path: 'Asked/A.MD', content: '' })).toBe('ask')
      expect(kind('Write', { path: 'free.txt', content: '' })).toBe('allow')
      const { workspace } = judgedFiles('Read', { path: 'free.txt' }, disk.root)
      expect(() => walk(workspace, 'SECRET.txt')).toThrow(/deny Read\(secret.txt\)/)
    } finally {
      disk.remove()
    }
    withFolder((root) => {
      writeFileSync(join(root, 'SECRET.TXT'), 'another file')
      expect(judgedFiles('Read', { path: 'SECRET.TXT' }, root).decision.kind).toBe('allow')
      expect(judgedFiles('Read', { path: 'secret.txt' }, root).decision.kind).toBe('deny')
    })
  },
)
