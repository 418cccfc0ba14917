import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { KikiError } from '../lib/errors.js'
import { readVersion } from '../lib/version.js'
import { approvalsCommand } from './approvals.js'
import { auditCommand } from './audit.js'

import { backupCommand } from './backup.js'
import { changesCommand } from './changes.js'
import { configCommand } from './config.js'
import { connectCommand } from './connect-command.js'
import { connectionsCommand } from './connections.js'
import type { CommandContext } from './context.js'
import { doctorCommand } from './doctor.js'
import { type Io, processIo } from './io.js'
import { openCommand } from './open.js'
import { operationsCommand } from './operations.js'
import { createOutput, reportError } from './output.js'
import { policyCommand } from './policy.js'
import { processesCommand } from './processes.js'
import { reloadCommand } from './reload.js'
import { restoreCommand } from './restore.js'
import { sessionsCommand } from './sessions.js'
import { startCommand } from './start.js'
import { statusCommand } from './status.js'
import { stopCommand } from './stop.js'
import { undoCommand } from './undo.js'

/**
 * Runs one command line, without the names of node and script.
 * @returns the exit code: 0 done, 1 refused or failed, 2 wrong usage (owner.md, "Command line").
 */
export async function runProgram(argv: readonly string[], io: Io = processIo()): Promise<number> {
  const json = wantsJson(argv)
  const said: string[] = []
  const output = createOutput(io, { json })
  const program = buildProgram({ output, ask: json ? undefined : io.ask }, said)
  let misused = program
  for (const command of withSubcommands(program)) {
    command.exitOverride((error) => {
      misused = command
      throw error
    })
  }
  try {
    await program.parseAsync(argv, { from: 'user' })
    return output.exitCode()
  } catch (error) {
    if (error instanceof CommanderError) return reportUsage(io, { error, command: misused, said: said.join(''), json })
    await reportError(io, error, { json })
    return 1
  }
}

/** The whole command tree; commander's own words (help, version) are added to `said`. */
export function buildProgram(context: CommandContext, said: string[]): Command {
  const program = new Command('kiki')
    .description('A local host service that lets AI clients you authorise work on your machine.')
    .version(readVersion(), '--version', 'print the version')
    .helpOption('-h, --help', 'show help')
    .helpCommand(false)
    .option('--home <dir>', "Kiki's home (default: $KIKI_HOME, else ~/.kiki)", folder)
    .option('--json', 'print one JSON value and nothing else')
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => said.push(text),
      writeErr: (text) => said.push(text),
      outputError: () => {},
    })
    .exitOverride()
    .addHelpText('after', '\nExample:\n  kiki start')
  startCommand(program, context)
  stopCommand(program, context)
  statusCommand(program, context)
  openCommand(program, context)
  connectionsCommand(program, context)
  connectCommand(program, context)
  sessionsCommand(program, context)
  approvalsCommand(program, context)
  operationsCommand(program, context)
  processesCommand(program, context)
  changesCommand(program, context)
  undoCommand(program, context)
  auditCommand(program, context)
  policyCommand(program, context)
  doctorCommand(program, context)
  reloadCommand(program, context)
  backupCommand(program, context)
  restoreCommand(program, context)
  configCommand(program, context)
  return program
}

interface Usage {
  error: CommanderError
  /** The command that was used in a wrong way. */
  command: Command
  said: string
  json: boolean
}

async function reportUsage(io: Io, { error, command, said, json }: Usage): Promise<number> {
  if (error.exitCode === 0) {
    await io.out(said)
    return 0
  }
  const noCommand = error.code === 'commander.help'
  if (noCommand) await io.err(`${said}\n`)
  const message = noCommand ? 'a command is missing' : error.message.replace(/^error: /, '')
  const hint = `Run \`${nameOf(command)} --help\` for how to use it.`
  await reportError(io, new KikiError('invalid_arguments', message, { hint }), { json })
  return 2
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)]
}

/** As it is typed: `kiki sessions create`. */
function nameOf(command: Command): string {
  return command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
}

/** Read before parsing, since wrong usage is reported in the same form. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json')
}

/** A flag in its place means that the folder was forgotten; taking it for a name would make a home of it. */
function folder(value: string): string {
  if (value === '' || value.startsWith('-')) throw new InvalidArgumentError('Give a folder, or leave --home out.')
  return value
}
