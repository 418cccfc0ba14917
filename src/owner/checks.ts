import { accessSync, constants, existsSync, lstatSync, readdirSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import type { HomePaths } from '../config/home.js'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'
import { shellWord } from '../lib/shell-word.js'
import type { Processes } from '../processes/processes.js'
import type { Engine } from '../sandbox/engine.js'

/** One line of `kiki doctor` (CL-16). */
export interface Check {
  name: string
  /** `missing` is something that only part of Kiki needs; a `warning` changes nothing yet; `broken` has to be mended. */
  state: 'ok' | 'missing' | 'warning' | 'broken'
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
      required: true,
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
  const broken = (says: string, mend: string): Check => ({ name: 'home', state: 'broken', says, mend })
  try {
    // Of Windows these modes and numbers say nothing.
    if (process.getuid === undefined) return { name: 'home', state: 'ok', says: dir }
    const real = realpathSync(dir)
    const { uid } = statSync(real)
    if (uid !== process.getuid()) return broken(`${dir} belongs to another user`, 'Choose another --home.')
    const open = openToOthers(real, OPEN_DEPTH)
    if (open.length === 0) return { name: 'home', state: 'ok', says: `${dir}, for its owner alone` }
    const more = open.length > SHOWN_OPEN ? ` and ${open.length - SHOWN_OPEN} more` : ''
    return broken(
      `others may get at ${open.slice(0, SHOWN_OPEN).join(', ')}${more}`,
      `Start the host: it makes the modes right. Or: chmod -R go= ${shellWord(real, process.platform)}`,
    )
  } catch (error) {
    return broken(`${dir} cannot be looked at: ${messageOf(error)}`, 'Make it yours again, or choose another --home.')
  }
}

/** As deep as a start makes the modes right. */
const OPEN_DEPTH = 3
const SHOWN_OPEN = 3

/** What others may get at in a folder, itself included. What a host makes and removes meanwhile is none of it. */
function openToOthers(path: string, depth: number): string[] {
  const stat = lstatSync(path, { throwIfNoEntry: false })
  if (stat === undefined || !(stat.isFile() || stat.isDirectory())) return []
  const own = (stat.mode & 0o077) === 0 ? [] : [path]
  if (depth === 0 || !stat.isDirectory()) return own
  return [...own, ...readdirSync(path).flatMap((name) => openToOthers(join(path, name), depth - 1))]
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

interface Program {
  name: string
  argv: readonly [string, ...string[]]
  /** What is not to be had without it. */
  need: string
  mend: string
  /** It comes with Kiki, so that something is wrong where it does not run. */
  required?: boolean
}

async function program(
  { processes }: CheckDeps,
  { name, argv, need, mend, required = false }: Program,
): Promise<Check> {
  const state = required ? 'broken' : 'missing'
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
    return { name, state, says: `it ended with ${exitCode}; ${need} need it`, mend }
  } catch (error) {
    if (!(error instanceof KikiError)) throw error
    return { name, state, says: `${messageOf(error)} ${need} need it`, mend }
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
  try {
    accessSync(path, constants.X_OK)
    return statSync(path).isFile()
  } catch (error) {
    // Not there, or in a folder that is not for this user: it could not be started either.
    if (['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP'].includes(systemCode(error) ?? '')) return false
    throw error
  }
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
