import { existsSync, lstatSync, readdirSync, statfsSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import type { HomePaths } from '../config/home.js'
import { KikiError, messageOf } from '../lib/errors.js'
import type { Processes } from '../processes/processes.js'
import type { Engine } from '../sandbox/engine.js'

/** One line of `kiki doctor` (CL-16). */
export interface Check {
  name: string
  /** `missing` is something that only part of Kiki needs; `broken` has to be mended. */
  state: 'ok' | 'missing' | 'broken'
  /** What was found. */
  says: string
  /** How to mend it. */
  mend?: string
}

export interface CheckDeps {
  processes: Processes
  paths: HomePaths
  env: Readonly<Record<string, string | undefined>>
  /** The oldest Node.js that will do, as `package.json` has it. */
  engines: string
}

/** Milliseconds for one program to say its version. */
const VERSION_MS = 10_000
/** Free bytes below which a disk is soon full. */
const LITTLE_SPACE = 500 * 1024 * 1024

/** What can be told of the machine and the home, with a host or without one. */
export async function machineChecks(deps: CheckDeps): Promise<Check[]> {
  return [
    runtime(deps.engines),
    homeCheck(deps.paths),
    space(deps.paths),
    await program(deps, {
      name: 'ripgrep',
      argv: [rgPath, '--version'],
      need: 'searches',
      mend: 'Install Kiki again: npm ci.',
    }),
    await program(deps, { name: 'bash', argv: ['bash', '--version'], need: 'commands', mend: 'Install bash.' }),
    await program(deps, { name: 'git', argv: ['git', '--version'], need: 'worktree sessions', mend: 'Install git.' }),
    browser(deps.env),
  ]
}

function runtime(engines: string): Check {
  const found = process.versions.node
  const [major = 0, minor = 0] = found.split('.').map(Number)
  const [needMajor = 0, needMinor = 0] = (/(\d+)\.(\d+)/.exec(engines)?.slice(1) ?? []).map(Number)
  const fits = major > needMajor || (major === needMajor && minor >= needMinor)
  if (fits) return { name: 'runtime', state: 'ok', says: `Node.js ${found}` }
  return {
    name: 'runtime',
    state: 'broken',
    says: `Node.js ${found} is older than ${engines}`,
    mend: `Install Node.js ${engines}.`,
  }
}

/** Everything in the home is the owner's alone (GU-60). */
function homeCheck({ dir }: HomePaths): Check {
  if (!existsSync(dir)) return { name: 'home', state: 'ok', says: `${dir} is made by the first \`kiki start\`` }
  const open = [dir, ...entries(dir), ...entries(join(dir, 'keys'))].filter((path) => {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    return stat !== undefined && !stat.isSymbolicLink() && !stat.isSocket() && (stat.mode & 0o077) !== 0
  })
  if (open.length === 0) return { name: 'home', state: 'ok', says: `${dir}, for its owner alone` }
  const mend = 'Start the host: it makes the modes right. Or: chmod -R go= on it.'
  return { name: 'home', state: 'broken', says: `others may get at ${open.slice(0, 3).join(', ')}`, mend }
}

function entries(dir: string): string[] {
  return existsSync(dir) ? readdirSync(dir).map((name) => join(dir, name)) : []
}

function space({ dir }: HomePaths): Check {
  let place = dir
  while (!existsSync(place)) place = join(place, '..')
  const { bavail, bsize } = statfsSync(place)
  const free = bavail * bsize
  const says = `${Math.round(free / 1024 / 1024)} MB free for ${dir}`
  if (free >= LITTLE_SPACE) return { name: 'disk', state: 'ok', says }
  return { name: 'disk', state: 'broken', says, mend: 'Make room: on a full disk Kiki refuses to start anything.' }
}

async function program(
  { processes }: CheckDeps,
  { name, argv, need, mend }: { name: string; argv: readonly [string, ...string[]]; need: string; mend: string },
): Promise<Check> {
  let out = ''
  try {
    const { exitCode } = await processes.run({
      ...{ argv, cwd: '/', signal: AbortSignal.timeout(VERSION_MS) },
      onStdout(chunk) {
        out += chunk.toString('utf8')
        return true
      },
    })
    if (exitCode === 0) return { name, state: 'ok', says: out.split('\n')[0] ?? '' }
    return { name, state: 'missing', says: `it ended with ${exitCode}; ${need} need it`, mend }
  } catch (error) {
    if (!(error instanceof KikiError)) throw error
    return { name, state: 'missing', says: `${messageOf(error)} ${need} need it`, mend }
  }
}

const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

function browser(env: CheckDeps['env']): Check {
  const folders = (env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
  const found = BROWSERS.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram)
  if (found !== undefined) return { name: 'browser', state: 'ok', says: found }
  return {
    name: 'browser',
    state: 'missing',
    says: 'none was found; browser tools, which are still to come, need one',
    mend: 'Install Chromium or Chrome.',
  }
}

function isProgram(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat?.isFile() === true && (stat.mode & 0o111) !== 0
}

/** In the words of the refusal that commands would get (SB-02). */
export function sandboxCheck(engine: Engine): Check {
  if ('start' in engine) return { name: 'sandbox', state: 'ok', says: `${engine.name} works` }
  return {
    name: 'sandbox',
    state: 'missing',
    says: `${engine.problem} Commands of connections that require one are refused.`,
    mend: engine.hint,
  }
}
