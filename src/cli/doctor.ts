import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { environment } from '../config/environment.js'
import type { HomePaths } from '../config/home.js'
import { loadConfig } from '../config/load.js'
import { ConfigError, formatProblem } from '../config/problems.js'
import { KikiError } from '../lib/errors.js'
import { silentLog } from '../lib/log.js'
import { readEngines } from '../lib/version.js'
import { type Check, machineChecks, sandboxCheck } from '../owner/checks.js'
import { createProcesses } from '../processes/processes.js'
import { findEngine } from '../sandbox/engine.js'
import { type CommandContext, homeOf, nextCommand, ownerOf, withExample } from './context.js'
import { printable } from './output.js'
import { resultOf } from './owner-client.js'

/** `kiki doctor` (CL-16): what works here, each line with how to mend it. @throws KikiError `conflict` where something is broken. */
export function doctorCommand(program: Command, { output }: CommandContext): void {
  const doctor = program
    .command('doctor')
    .description('check what Kiki needs here; exit code 1 where something is broken')
  doctor.action(async (_: unknown, command: Command) => {
    const paths = homeOf(command)
    const config = await configCheck(paths)
    const found = (await hostChecks(command)) ?? (await ownChecks(command, paths))
    const checks = [config, ...found]
    const broken = checks.filter(({ state }) => state === 'broken')
    await output.result({ ok: broken.length === 0, checks }, () => checks.map(words).join('\n'))
    if (broken.length > 0) {
      throw new KikiError('conflict', `Not in order: ${broken.map(({ name }) => name).join(', ')}.`, {
        hint: 'Each line above says how to mend it.',
      })
    }
  })
  withExample(doctor, 'kiki doctor', 'kiki doctor --json')
}

function words({ name, state, says, mend }: Check): string {
  const line = `${state.padEnd(8)}${name.padEnd(10)}${says}`
  return printable(mend === undefined ? line : `${line}\n${' '.repeat(18)}${mend}`, { lines: true })
}

/** As a start would read it. */
async function configCheck({ config: file }: HomePaths): Promise<Check> {
  try {
    const { warnings } = await loadConfig({ file })
    const says = warnings.length === 0 ? file : warnings.map(formatProblem).join('; ')
    return { name: 'config', state: warnings.length === 0 ? 'ok' : 'missing', says }
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return {
      name: 'config',
      state: 'broken',
      says: error.message,
      mend: 'Mend the file; a running host goes on with what it has read before.',
    }
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
async function ownChecks(command: Command, paths: HomePaths): Promise<Check[]> {
  const dir = mkdtempSync(join(tmpdir(), 'kiki-doctor-'))
  const env = environment()
  const processes = createProcesses({ dir, log: silentLog, env })
  try {
    const { config } = await loadConfig({ file: paths.config }).catch(() => loadConfig({ file: join(dir, 'none') }))
    const engine = await findEngine({ processes, config: () => config, programFolder: dir, platform: process.platform })
    const start = nextCommand(command, 'start')
    return [
      ...(await machineChecks({ processes, paths, env, engines: readEngines() })),
      sandboxCheck(engine),
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
