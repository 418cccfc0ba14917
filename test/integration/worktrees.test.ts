import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectClient } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { runKiki } from '../helpers/run-kiki.js'
import { attach, outputOf, textOf } from './command-bench.js'

let base: string
let repo: string
let oracle: string
let host: TestHost
let connection: string

beforeAll(async () => {
  mkdirSync(join(homedir(), '.cache'), { recursive: true })
  base = realpathSync(mkdtempSync(join(homedir(), '.cache', 'kiki-worktrees-')))
  repo = join(base, 'project')
  oracle = join(base, 'oracle')
  mkdirSync(repo)
  git('init', '-q', '-b', 'main')
  writeFileSync(join(repo, '.gitattributes'), '*.lfs filter=evil\n')
  writeFileSync(join(repo, 'a.txt'), 'one\n')
  writeFileSync(join(repo, 'b.lfs'), 'as stored\n')
  writeFileSync(join(repo, '.gitignore'), 'local\nnode_modules/\n')
  git('add', '-A')
  git('commit', '-qm', 'first')
  // Whatever a repository can be made to run must not run by Kiki's own git.
  const evil = join(base, 'evil.sh')
  writeFileSync(evil, `#!/bin/sh\necho "$0 $*" >> ${oracle}\ncat\n`)
  chmodSync(evil, 0o755)
  for (const hook of ['post-checkout', 'pre-commit', 'reference-transaction', 'post-index-change']) {
    writeFileSync(join(repo, '.git/hooks', hook), `#!/bin/sh\necho ${hook} >> ${oracle}\n`, { mode: 0o755 })
  }
  git('config', 'core.fsmonitor', evil)
  git('config', 'filter.evil.smudge', evil)
  git('config', 'filter.evil.clean', evil)
  git('config', 'filter.evil.required', 'true')
  rmSync(oracle, { force: true })
  host = await startHost({ base, env: { XDG_DATA_HOME: join(base, 'data') } })
  connection = await host.connection({ tools: ['files', 'shell'], allow_commands: true })
})
afterAll(async () => {
  await host.stop()
  rmSync(base, { recursive: true, force: true })
})

function git(...args: string[]): string {
  return execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
    cwd: repo,
    encoding: 'utf8',
  })
}

const branches = () =>
  git('-c', 'core.fsmonitor=false', 'for-each-ref', '--format=%(refname:short)', 'refs/heads').trim().split('\n')

interface Made {
  session_ref: string
  workspace: string
  branch: string
  notes: string[]
}
const make = (worktree: string) => host.api<Made>('POST', '/api/sessions', { connection, workspace: repo, worktree })
const close = (ref: string) =>
  host.api<{ worktree: { kept: boolean; says: string } }>('POST', `/api/sessions/${ref}/close`)

it('SE-10 SE-04 FC-P03 a session works in a worktree on its branch, and nothing of the repository runs to make it', async () => {
  const made = await make('feature/one')
  expect(made.workspace.startsWith(join(base, 'data/kiki/worktrees/project-'))).toBe(true)
  expect(made.branch).toBe('feature/one')
  expect(made.notes[0]).toContain('evil')
  expect(readFileSync(join(made.workspace, 'b.lfs'), 'utf8')).toBe('as stored\n')
  const client = await connectClient(host, connection, 'v2 auto')
  const resumed = await client.call('kiki_session', { action: 'resume', session_ref: made.session_ref })
  expect(textOf(resumed)).toContain('on branch feature/one')
  await client.close()
  expect(existsSync(oracle)).toBe(false)
  const done = await close(made.session_ref)
  expect(done.worktree).toMatchObject({ kept: false })
  expect(existsSync(made.workspace)).toBe(false)
  expect(branches()).toEqual(['main'])
  expect(existsSync(oracle)).toBe(false)
})

it('SE-10 closing keeps what exists nowhere else, and says so; what was committed stays on its branch', async () => {
  for (const [name, work] of [
    ['changed', (dir: string) => writeFileSync(join(dir, 'a.txt'), 'two\n')],
    ['untracked', (dir: string) => writeFileSync(join(dir, 'new.txt'), 'new\n')],
    ['ignored', (dir: string) => writeFileSync(join(dir, 'local'), 'mine\n')],
  ] as const) {
    const made = await make(name)
    work(made.workspace)
    const { worktree } = await close(made.session_ref)
    expect(worktree, name).toMatchObject({ kept: true, says: expect.stringContaining(made.workspace) })
    expect(existsSync(made.workspace)).toBe(true)
  }
  const made = await make('committed')
  const at = await attach(host, connection, made.session_ref)
  const done = await at.bash(
    'mkdir node_modules && echo x > node_modules/x && echo two > a.txt && git -c user.name=a -c user.email=b -c core.hooksPath=/dev/null -c core.fsmonitor=false commit -qm two a.txt && git log --oneline | wc -l',
  )
  // The repository's own filter ran in the sandbox, where it reached nothing.
  expect(outputOf(done).endsWith('2\n')).toBe(true)
  await at.client.close()
  const { worktree } = await close(made.session_ref)
  expect(worktree).toMatchObject({ kept: false, says: expect.stringContaining('the branch committed stays') })
  expect(existsSync(made.workspace)).toBe(false)
  expect(branches()).toContain('committed')
})

it('SE-10 a branch that is there is checked out and never deleted; names that are none, and no repository, are refused', async () => {
  git('-c', 'core.fsmonitor=false', 'branch', 'there')
  const said = await runKiki(host.home, [
    'sessions',
    'create',
    '--connection',
    connection,
    '--workspace',
    repo,
    '--worktree',
    'there',
    '--json',
  ])
  const made = JSON.parse(said.out) as Made
  expect(made.branch).toBe('there')
  const closed = await runKiki(host.home, ['sessions', 'close', made.session_ref])
  expect(closed.out).toContain('the branch there stays')
  expect(branches()).toContain('there')
  await expect(make('--detach')).rejects.toThrow('is no name for a branch')
  await expect(make('a..b')).rejects.toThrow('is no name for a branch')
  await expect(make('main')).rejects.toThrow(/git worktree failed: .*main/)
  const plain = join(base, 'plain')
  mkdirSync(plain)
  await expect(host.api('POST', '/api/sessions', { connection, workspace: plain, worktree: 'x' })).rejects.toThrow(
    'no git repository',
  )
})
