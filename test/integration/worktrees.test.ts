import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { connectClient } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson, runKiki } from '../helpers/run-kiki.js'
import { textOf } from './command-bench.js'

let host: TestHost
let connection: string
let base: string
beforeAll(async () => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-worktrees-')))
  mkdirSync(join(base, 'owner'))
  host = await startHost({ base, env: { XDG_DATA_HOME: join(base, 'data'), HOME: join(base, 'owner') } })
  connection = await host.connection({ ceiling: 'full' })
})
afterAll(() => host.stop())

let repo: string
let count = 0
beforeEach(() => {
  repo = join(base, `repo${++count}`)
  mkdirSync(repo)
  git('init', '--quiet', '--initial-branch=main')
  git('config', 'user.name', 'Test')
  git('config', 'user.email', 'test@example.org')
  writeFileSync(join(repo, 'a.txt'), 'one\n')
  git('add', '.')
  git('commit', '--quiet', '-m', 'first')
})

function git(...args: string[]): string {
  return gitIn(repo, ...args)
}

function gitIn(cwd: string, ...args: string[]): string {
  const env = { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' }
  return execFileSync('git', args, { cwd, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim()
}

interface Made {
  session_ref: string
  workspace: string
  title: string
  worktree: { repository: string; branch: string; made_branch: boolean; filters_off: string[] }
}
interface Ended {
  ended_worktree: { path: string; branch: string; kept: boolean; branch_removed: boolean; says: string }
}

const make = (branch: string, fields = {}) =>
  host.api<Made>('POST', '/api/sessions', { connection, workspace: repo, worktree: branch, ...fields })
const close = async ({ session_ref }: Made) =>
  (await host.api<Ended>('POST', `/api/sessions/${session_ref}/close`)).ended_worktree
const branches = () => git('for-each-ref', '--format=%(refname:short)', 'refs/heads').split('\n')

describe('a session in a worktree', () => {
  it('SE-10 SE-04 stands on a new branch under the data folder, and the client is told so', async () => {
    const made = await make('feature/login')
    expect(made.worktree).toEqual({ repository: repo, branch: 'feature/login', made_branch: true, filters_off: [] })
    expect(made.workspace).toMatch(new RegExp(`^${join(base, 'data/kiki/worktrees')}/repo\\d+-[0-9a-f-]+$`))
    expect(made.title).toBe(`repo${count} (feature/login)`)
    expect(readFileSync(join(made.workspace, 'a.txt'), 'utf8')).toBe('one\n')
    const client = await connectClient(host, connection, 'v2 2026-07-28')
    try {
      const resumed = await client.call('kiki_session', { action: 'resume', session_ref: made.session_ref })
      expect(textOf(resumed)).toContain(`Workspace: ${made.workspace} on branch feature/login.`)
      const written = await client.call('Write', {
        ...{ path: 'b.txt', content: 'two\n' },
        _kiki: { session_ref: made.session_ref, idempotency_key: 'write-b' },
      })
      expect(written.isError).toBeUndefined()
      expect(existsSync(join(repo, 'b.txt'))).toBe(false)
      const closed = await client.call('kiki_session', { action: 'close', session_ref: made.session_ref })
      expect(textOf(closed)).toContain('(branch feature/login) is kept: it holds 1 untracked files or folders.')
    } finally {
      await client.close()
    }
    expect(readFileSync(join(made.workspace, 'b.txt'), 'utf8')).toBe('two\n')
    expect(gitIn(made.workspace, 'status', '--porcelain')).toBe('?? b.txt')
  })

  it('SE-10 an existing branch is taken where it is checked out nowhere; refusals leave nothing behind', async () => {
    git('branch', 'old')
    const made = await make('old')
    expect(made.worktree.made_branch).toBe(false)
    expect(git('worktree', 'list')).toContain('[old]')
    await expect(make('old')).rejects.toThrow(/checked out in/)
    await expect(make('main')).rejects.toThrow(/checked out in/)
    for (const name of ['--output=x', 'a..b', 'HEAD', 'x y', '@{-1}']) {
      await expect(make(name), name).rejects.toThrow(/cannot be the name of a branch/)
    }
    mkdirSync(join(repo, 'sub'))
    await expect(make('x', { workspace: join(repo, 'sub') })).rejects.toThrow(/not the top folder/)
    await expect(make('x', { workspace: host.workspace })).rejects.toThrow(/not a git repository/)
    await expect(make('x', { mode: 'nonsense' })).rejects.toThrow(/is not a mode/)
    expect(branches()).toEqual(['main', 'old'])
    expect(git('worktree', 'list').split('\n')).toHaveLength(2)
    expect(await close(made)).toMatchObject({ kept: false, branch_removed: false })
    expect(branches()).toEqual(['main', 'old'])
    expect(existsSync(made.workspace)).toBe(false)
  })

  it('SE-10 CL-06 the command line makes one and says what became of it', async () => {
    const create = ['sessions', 'create', '--connection', connection, '--workspace', repo, '--worktree', 'cli']
    const { out, code } = await runKiki(host.home, create)
    expect(code).toBe(0)
    expect(out).toMatch(/│ branch +│ cli +│/)
    const { value } = await kikiJson(host.home, ['sessions', 'list', '--connection', connection])
    const { sessions } = value as unknown as { sessions: Made[] }
    const made = sessions.find(({ worktree }) => worktree?.branch === 'cli')
    const closed = await runKiki(host.home, ['sessions', 'close', made?.session_ref ?? ''])
    expect(closed.out).toContain(`Its worktree ${made?.workspace} held nothing of its own and is removed`)
    expect(branches()).toEqual(['main'])
  })
})

describe('the end of the session', () => {
  const edits: [string, (path: string) => void, RegExp][] = [
    ['a change', (path) => appendFileSync(join(path, 'a.txt'), 'more'), /1 changed/],
    [
      'a change that git is told to overlook',
      (path) => {
        gitIn(path, 'update-index', '--assume-unchanged', 'a.txt')
        appendFileSync(join(path, 'a.txt'), 'more')
      },
      /1 changed/,
    ],
    ['a deleted file', (path) => rmSync(join(path, 'a.txt')), /1 changed/],
    [
      'what is staged only',
      (path) => {
        writeFileSync(join(path, 's.txt'), 's')
        gitIn(path, 'add', 's.txt')
        rmSync(join(path, 's.txt'))
      },
      /staged/,
    ],
    [
      'an ignored file',
      (path) => {
        appendFileSync(join(repo, '.git/info/exclude'), '*.local\n')
        writeFileSync(join(path, 'x.local'), 'x')
      },
      /1 ignored/,
    ],
    [
      'a commit',
      (path) => {
        gitIn(path, 'commit', '--quiet', '--allow-empty', '-m', 'own')
      },
      /1 commit that nothing else has/,
    ],
    [
      'another branch',
      (path) => {
        gitIn(path, 'switch', '--quiet', '--create', 'elsewhere')
      },
      /not on branch/,
    ],
    [
      'an unfinished search for a commit',
      (path) => {
        gitIn(path, 'bisect', 'start')
      },
      /unfinished/,
    ],
    ['another .git file', (path) => writeFileSync(join(path, '.git'), `gitdir: ${repo}/.git\n`), /\.git file/],
  ]
  it.each(edits)('SE-10 %s keeps the worktree, which is reported', async (_, edit, why) => {
    const made = await make('work')
    edit(made.workspace)
    const names = readdirSync(made.workspace)
    const ended = await close(made)
    expect(ended).toMatchObject({ path: made.workspace, branch: 'work', kept: true, branch_removed: false })
    expect(ended.says).toMatch(why)
    expect(readdirSync(made.workspace)).toEqual(names)
    expect(branches()).toContain('work')
  })

  it('SE-10 work that was merged elsewhere lets the worktree go, and its branch stays', async () => {
    const made = await make('work')
    gitIn(made.workspace, 'commit', '--quiet', '--allow-empty', '-m', 'own')
    expect((await close(made)).kept).toBe(true)
    git('merge', '--quiet', 'work')
    expect(await close(made)).toMatchObject({ kept: false, branch_removed: false })
    expect(existsSync(made.workspace)).toBe(false)
    expect(branches()).toEqual(['main', 'work'])
  })

  it('SE-10 SE-06 SE-14 a worktree stays while another session works in it, and deleting the last one removes it', async () => {
    const made = await make('shared')
    const other = await host.session(connection, { workspace: made.workspace })
    const ended = await host.api<Ended>('DELETE', `/api/sessions/${made.session_ref}`)
    expect(ended.ended_worktree).toMatchObject({ kept: true, says: expect.stringContaining('another open session') })
    const last = await host.api<Ended>('DELETE', `/api/sessions/${other}`)
    expect(last.ended_worktree).toMatchObject({ kept: false, branch_removed: true })
    expect(existsSync(made.workspace)).toBe(false)
    expect(branches()).toEqual(['main'])
  })

  it('SE-10 a repository that is gone keeps the worktree and does not keep the session from ending', async () => {
    const made = await make('work')
    rmSync(repo, { recursive: true })
    expect(await close(made)).toMatchObject({ kept: true })
    expect(existsSync(join(made.workspace, 'a.txt'))).toBe(true)
  })
})

describe('a repository that would run programs', () => {
  /** Makes each setting of the repository that git runs write its name into a file. */
  function plant(oracle: string): void {
    const script = (name: string) => {
      const file = join(base, `evil-${name.replace(/\W/g, '_')}${count}`)
      writeFileSync(file, `#!/bin/sh\necho ${name.replace(/\W/g, '_')} >> ${oracle}\ncat 2>/dev/null\nexit 0\n`)
      chmodSync(file, 0o755)
      return file
    }
    for (const hook of ['post-checkout', 'reference-transaction', 'post-index-change', 'pre-commit']) {
      mkdirSync(join(repo, '.git/hooks'), { recursive: true })
      writeFileSync(join(repo, '.git/hooks', hook), readFileSync(script(hook)), { mode: 0o755 })
    }
    git('config', 'filter.evil.smudge', script('smudge'))
    git('config', 'filter.evil.clean', script('clean'))
    git('config', 'filter.evil.required', 'true')
    git('config', 'filter.o=d.d.smudge', script('odd'))
    writeFileSync(join(base, `late${count}.config`), `[filter "late"]\n\tsmudge = ${script('late')}\n`)
    git('config', 'includeIf.gitdir:**/worktrees/**.path', join(base, `late${count}.config`))
    git('config', 'core.fsmonitor', script('fsmonitor'))
    writeFileSync(join(base, 'owner/.gitconfig'), `[filter "lfs"]\n\tsmudge = ${script('lfs')}\n`)
    git('config', 'core.pager', script('pager'))
    git('config', 'core.sshCommand', script('ssh'))
    git('config', 'diff.external', script('diff'))
  }

  function attributes(): void {
    writeFileSync(
      join(repo, '.gitattributes'),
      '*.bin filter=evil\n*.odd filter=o=d.d\n*.late filter=late\n*.big filter=lfs\n',
    )
    for (const name of ['x.bin', 'x.odd', 'x.late', 'x.big']) writeFileSync(join(repo, name), `${name}\n`)
    git('add', '.')
    git('commit', '--quiet', '-m', 'files that need filters')
  }

  it('SE-10 FC-P03 no hook, monitor, filter or other program of it runs, and the reply says which filters were left out', async () => {
    const oracle = join(base, `oracle${count}`)
    attributes()
    plant(oracle)
    const made = await make('quiet')
    expect(existsSync(oracle) ? readFileSync(oracle, 'utf8') : '').toBe('')
    expect(made.worktree.filters_off).toEqual(['evil', 'late', 'lfs', 'o=d.d'])
    expect(readFileSync(join(made.workspace, 'x.bin'), 'utf8')).toBe('x.bin\n')
    writeFileSync(join(made.workspace, 'x.bin'), 'changed\n')
    const kept = await close(made)
    expect(kept).toMatchObject({ kept: true, says: expect.stringContaining('1 changed') })
    writeFileSync(join(made.workspace, 'x.bin'), 'x.bin\n')
    expect(await close(made)).toMatchObject({ kept: false, branch_removed: true })
    expect(existsSync(oracle) ? readFileSync(oracle, 'utf8') : '').toBe('')
    // The same without Kiki: what was planted does run.
    git('worktree', 'add', '--quiet', '-b', 'loud', join(base, `loud${count}`))
    expect(readFileSync(oracle, 'utf8')).toMatch(/post_checkout/)
    expect(readFileSync(oracle, 'utf8')).toMatch(/smudge/)
    expect(readFileSync(oracle, 'utf8')).toMatch(/late/)
    expect(readFileSync(oracle, 'utf8')).toMatch(/odd/)
    const env = { ...process.env, HOME: join(base, 'owner') }
    const own = ['worktree', 'add', '--quiet', '-b', 'own', join(base, `own${count}`)]
    execFileSync('git', own, { cwd: repo, env, stdio: 'ignore' })
    expect(readFileSync(oracle, 'utf8')).toMatch(/lfs/)
    gitIn(join(base, `loud${count}`), 'status')
    expect(readFileSync(oracle, 'utf8')).toMatch(/fsmonitor/)
  })
})
