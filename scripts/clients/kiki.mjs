// A real Kiki host on a fresh home, with one connection, a git repository and a session on it.
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const MAIN = fileURLToPath(new URL('../../dist/main.js', import.meta.url))

export const ORIGINAL = 'first line\nsecond line\n'
export const CHANGED = 'first line\n2nd line\n'

/** @param {string} base an empty folder */
export function startKiki(base, more = []) {
  const home = join(base, 'kiki-home')
  const workspace = join(base, 'repo')
  mkdirSync(workspace)
  writeFileSync(join(workspace, 'a.txt'), ORIGINAL)
  execFileSync('git', ['init', '-q', workspace])
  const kiki = (...args) =>
    JSON.parse(execFileSync(process.execPath, [MAIN, ...args, '--json', '--home', home], { encoding: 'utf8' }))
  kiki('start', '--background')
  const connection = kiki(
    'connections',
    'add',
    '--name',
    'try',
    '--preset',
    'editor',
    '--ceiling',
    'auto-edit',
    ...more,
  ).id
  const session = kiki('sessions', 'create', '--connection', connection, '--workspace', workspace).session_ref
  return {
    ...{ home, workspace, connection, session, file: join(workspace, 'a.txt'), kiki },
    operations: () => kiki('operations', 'list').operations.map(({ id }) => kiki('operations', 'show', id)),
    stop: () => execFileSync(process.execPath, [MAIN, 'stop', '--home', home], { stdio: 'ignore' }),
  }
}
