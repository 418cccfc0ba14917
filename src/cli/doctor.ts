import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { environment } from '../config/environment.js'
import type { HomePaths } from '../config/home.js'
import { loadConfig } from '../config/load.js'
import { formatProblem } from '../config/problems.js'
import type { Config } from '../config/schema.js'
import { KikiError } from '../lib/errors.js'
import { silentLog } from '../lib/log.js'
import { readEngines } from '../lib/version.js'
import { type Check, machineChecks, sandboxCheck } from '../owner/checks.js'
import { createProcesses, type Processes } from '../processes/processes.js'
import { type Engine, findEngine } from '../sandbox/engine.js'
import { type CommandContext, homeOf, nextCommand, ownerOf, withExample } from './context.js'
import { printable } from './output.js'
import { resultOf } from './owner-client.js'

/** `kiki doctor` (CL-16): what works here, each line with how to mend it; exit code 1 where something is broken. */
export function doctorCommand(program: Command, { output }: CommandContext): void {
  const doctor = program
    .command('doctor')
    .description('check what Kiki needs here; exit code 1 where something is broken')
  doctor.action(async (_: unknown, command: Command) => {
    const paths = homeOf(command)
    const { check, config } = await configCheck(paths)
    const found = (await hostChecks(command)) ?? (await ownChecks(command, paths, config))
    const checks = [check, ...found]
    const broken = checks.filter(({ state }) => state === 'broken').map(({ name }) => name)
    const text = () => checks.map(words).join('\n')
    if (broken.length === 0) return output.result({ ok: true, checks }, text)
    await output.failure({ ok: false, checks }, text)
    await output.note(`Not in order: ${broken.join(', ')}. Each line says how to mend it.`)
  })
  withExample(doctor, 'kiki doctor', 'kiki doctor --json')
}

function words({ name, state, says, mend }: Check): string {
  const indent = `\n${' '.repeat(18)}`
  const line = `${state.padEnd(8)}${name.padEnd(10)}${says.replaceAll('\n', indent)}`
  return printable(mend === undefined ? line : `${line}${indent}${mend}`, { lines: true })
}

/** As a start would read it; without a configuration where none can be read. */
async function configCheck({ config: file }: HomePaths): Promise<{ check: Check; config?: Config }> {
  try {
    const { config, warnings } = await loadConfig({ file })
    if (warnings.length === 0) return { check: { name: 'config', state: 'ok', says: file }, config }
    const says = warnings.map(formatProblem).join('\n')
    return {
      check: { name: 'config', state: 'warning', says, mend: 'Correct it where it does not say what you mean.' },
      config,
    }
  } catch (error) {
    if (!(error instanceof KikiError)) throw error
    const mend = 'Mend the file: no host starts with it, and a running one goes on with what it has read before.'
    return { check: { name: 'config', state: 'broken', says: error.message, mend } }
  }
}

/** What the running host finds; undefined where none runs. */
async function hostChecks(command: Command): Promise<Check[] | undefined> {
  try {
    return (await resultOf(ownerOf(command).api.doctor.$get())).checks
  } catch (error) {
    if (error instanceof KikiError && error.code === 'upstream_unavailable') return undefined
    throw error
  }
}

/** Without a host: the database is left alone, because only a host may open it (GU-40). */
async function ownChecks(command: Command, paths: HomePaths, config: Config | undefined): Promise<Check[]> {
  const dir = mkdtempSync(join(tmpdir(), 'kiki-doctor-'))
  const env = environment()
  const processes = createProcesses({ dir, log: silentLog, env })
  try {
    const start = nextCommand(command, 'start')
    return [
      ...(await machineChecks({ processes, paths, env, engines: readEngines() })),
      config === undefined ? unknownSandbox() : sandboxCheck(await engineFor(processes, config, dir)),
      {
        name: 'host',
        state: 'missing',
        says: 'none runs; database and listener are looked at by a running one',
        mend: `\`${start}\``,
      },
    ]
  } finally {
    await processes.close()
    rmSync(dir, { recursive: true, force: true })
  }
}

function engineFor(processes: Processes, config: Config, programFolder: string): Promise<Engine> {
  return findEngine({ processes, config: () => config, programFolder, platform: process.platform })
}

/** Which engine it would be stands in the configuration. */
function unknownSandbox(): Check {
  return {
    name: 'sandbox',
    state: 'missing',
    says: 'not looked at',
    mend: 'Mend config.toml first: it names the engine.',
  }
}
