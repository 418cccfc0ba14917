// npm run bench [-- --peers DIR] [-- any option of bench/bench.mjs]: Kiki beside the floors, and beside peers that DIR has installed.
// Every figure is a ratio inside one run; bench/README.md says how to read them.
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rgPath } from '@vscode/ripgrep'

const root = fileURLToPath(new URL('..', import.meta.url))
const given = process.argv.slice(2)
const at = given.indexOf('--peers')
const peers = at === -1 ? undefined : given.splice(at, 2)[1]
const work = mkdtempSync(join(tmpdir(), 'kiki-bench-'))
const out = join(work, 'result.json')
const adapter = (name) => join(root, 'bench/adapters', `${name}.json`)
const adapters = [adapter('kiki-stdio'), adapter('floor-raw-stdio')]
for (const peer of ['server-filesystem', 'desktop-commander']) {
  if (peers !== undefined && existsSync(peers)) adapters.push(adapter(peer))
}
const node = (file, ...args) =>
  spawnSync(process.execPath, [join(root, file), ...args], { stdio: 'inherit', cwd: root }).status ?? 1

try {
  const vars = ['--var', `kiki=${join(root, 'dist/main.js')}`, '--var', `rg=${rgPath}`]
  if (peers !== undefined) vars.push('--var', `peers=${peers}`)
  const measures = given.includes('--measures')
    ? []
    : ['--measures', 'tools,cold,read,page,edit,shell,glob,grep,conc,idle']
  const rounds = given.includes('--rounds') ? [] : ['--rounds', '5', '--block', '300']
  const status = node(
    'bench/bench.mjs',
    '--work',
    work,
    '--out',
    out,
    ...vars,
    ...measures,
    ...rounds,
    ...given,
    ...adapters,
  )
  if (status === 0) node('bench/targets.mjs', out)
  process.exitCode = status
} finally {
  rmSync(work, { recursive: true, force: true })
}
