import { expect, it } from 'vitest'
import { isGuarded, secretNames } from '../../src/policy/guards.js'

const plain = secretNames({ more: [], less: [] })

it('PA-05 what git, shells, editors and Kiki take commands from is guarded, at any depth and in any spelling', () => {
  const guarded = [
    '/w/.git',
    '/w/.git/hooks/pre-commit',
    '/w/.git/config',
    '/w/sub/deep/.git/config',
    '/w/.GIT/config',
    '/w/.git./config',
    '/w/.git /hooks/x',
    '/w/.g\u200bit/config',
    '/w/.kiki/mcp.json',
    '/w/.Kiki/settings.local.json',
    '/w/.envrc',
    '/w/.vscode/tasks.json',
    '/w/.idea/workspace.xml',
    '/w/.husky/pre-push',
    '/w/.bashrc',
    '/w/.ZSHRC',
    '/w/.npmrc',
    '/w/.gitmodules',
    '/w/.claude/settings.json',
    '/w/.mcp.json',
    '/w/mirror.git/hooks/update',
    '/w/mirror.git/config',
    '/h/.config/git/config',
    '/h/.config/fish/conf.d/a.fish',
    '/h/.config/autostart/a.desktop',
    '/h/.ssh/authorized_keys',
  ]
  const free = [
    '/w/.github/workflows/ci.yml',
    '/w/src/git/config',
    '/w/.gitignore',
    '/w/Makefile',
    '/w/package.json',
    '/w/kiki/x',
    '/w/.vscodeignore',
    '/w/git/hooks/a',
    '/h/.config/app/config',
    '/w/fish/a',
  ]
  expect(guarded.filter((path) => !isGuarded(path))).toEqual([])
  expect(free.filter((path) => isGuarded(path))).toEqual([])
})

it("PA-05 a folder that the owner chose to work in is not guarded for its own name, unless it is git's or Kiki's", () => {
  const inside = (path: string) => isGuarded(path, '/h/.cursor/worktrees/app')
  expect(inside('/h/.cursor/worktrees/app/src/a.ts')).toBe(false)
  expect(inside('/h/.cursor/worktrees/app/.cursor/rules')).toBe(true)
  expect(inside('/h/.cursor/worktrees/app-2/a.ts')).toBe(true)
  expect(isGuarded('/w/.git/hooks/x', '/w/.git')).toBe(true)
  expect(isGuarded('/w/.kiki/x', '/w/.kiki')).toBe(true)
  expect(isGuarded('/.envrc', '/')).toBe(true)
  expect(isGuarded('/.bashrc', '/.bashrc')).toBe(false)
})

it('PA-06 files that look like secrets are known by their names, in any spelling', () => {
  const secret = [
    '/w/.env',
    '/w/.env.local',
    '/w/.env.production',
    '/w/.ENV',
    '/w/.env.',
    '/w/server.pem',
    '/w/tls/server.key',
    '/w/id_rsa',
    '/w/id_ed25519',
    '/w/id_ecdsa',
    '/w/.netrc',
    '/w/.git-credentials',
    '/home/o/.ssh/config',
    '/home/o/.aws/credentials',
    '/home/o/.gnupg/private-keys-v1.d/x',
  ]
  const open = [
    '/w/.env.example',
    '/w/.env.sample',
    '/w/env',
    '/w/id_rsa.pub',
    '/w/.environment',
    '/w/key.ts',
    '/w/pem.md',
    '/home/o/.ssh/known_hosts',
  ]
  expect(secret.filter((path) => !plain.has(path))).toEqual([])
  expect(open.filter((path) => plain.has(path))).toEqual([])
})

it('PA-06 the owner adds names and takes names out', () => {
  const own = secretNames({ more: ['*.secret', '/w/private/**'], less: ['test.pem', '/w/fixtures/**'] })
  expect(['/w/a.secret', '/w/private/deep/x'].every(own.has)).toBe(true)
  expect(['/w/test.pem', '/w/fixtures/server.key', '/w/a.txt'].some(own.has)).toBe(false)
  expect(own.has('/w/other.pem')).toBe(true)
})
