import { existsSync, rmSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { type HomePaths, homeCommand } from '../config/home.js'
import { loadConfig } from '../config/load.js'
import type { Flag } from '../config/overrides.js'
import { formatProblem } from '../config/problems.js'
import { LOG_LEVELS } from '../config/schema.js'
import type { Host, HostOptions } from '../host.js'
import { deferred } from '../lib/async.js'
import { KikiError } from '../lib/errors.js'
import { loginUrl } from '../owner/open.js'
import { type CommandContext, homeOf, nextCommand, ownerOf, withExample } from './context.js'
import { currentSocket, resultOf } from './owner-client.js'
import { startInBackground } from './start-background.js'
import { hostStatus } from './status.js'

interface StartFlags {
  background?: boolean
  unlessStopped?: boolean
  port?: string
  logLevel?: string
}

/** What `kiki start --json` prints once the host is ready (CL-01). */
export interface Started {
  pid: number
  home: string
  owner_url: string
  login_url: string
  socket: string
  /** Where local HTTP clients connect; null: this version serves clients through the bridge only. */
  mcp_url: string | null
}

/** `kiki start` (CL-01): the host itself, or with `--background` a host that outlives the command. */
export function startCommand(program: Command, context: CommandContext): void {
  const start = program.command('start').description('start the host and print the link to the settings page')
  start
    .option('--background', 'return once a host is ready; one that runs already is fine')
    .option('--port <n>', 'port of the settings page on 127.0.0.1 (default: any free one)', port)
    .addOption(new Option('--unless-stopped', 'for bridges: refuse after `kiki stop`').hideHelp())
    .addOption(new Option('--log-level <level>', 'how much the log tells').choices(LOG_LEVELS))
    .action(async (flags: StartFlags, command: Command) => {
      const paths = homeOf(command)
      if (flags.unlessStopped && existsSync(paths.stopped)) throw stoppedByOwner(paths)
      if (flags.background) await background(context, paths, flags, command)
      else await foreground(context, paths, flags, command)
    })
  withExample(start, 'kiki start', 'kiki start --background --json')
}

function stoppedByOwner(paths: HomePaths): KikiError {
  return new KikiError('conflict', `Kiki was stopped by its owner (home ${paths.dir}).`, {
    hint: `Run ${homeCommand(paths.dir, 'start')}.`,
  })
}

async function foreground({ output }: CommandContext, paths: HomePaths, flags: StartFlags, command: Command) {
  const load = () => loadConfig({ file: paths.config, flags: configFlags(flags) })
  const { config, warnings, locate } = await load()
  for (const warning of warnings) await output.note(`warning: ${formatProblem(warning)}`)
  // From before the start: a signal that comes meanwhile closes the host as soon as it is there.
  const signal = firstSignal()
  try {
    const host = await openHost({ home: paths.dir, config, locate, reload: load }, command)
    const closing = signal.came.then(() => host.close())
    // Awaited below, where a failure is reported.
    closing.catch(() => undefined)
    if (!flags.unlessStopped) rmSync(paths.stopped, { force: true })
    const started = describe(host, host.loginUrl())
    await output.result(started, () => `${words(started)}\nStop it with Ctrl-C or \`${nextCommand(command, 'stop')}\`.`)
    await host.closed
    if (signal.seen()) await closing
  } finally {
    signal.forget()
  }
}

/** Loads the host only here, since no other command needs it. */
async function openHost(options: HostOptions, command: Command): Promise<Host> {
  const [{ createHost }, { DatabaseError }] = await Promise.all([import('../host.js'), import('../store/failures.js')])
  try {
    return await createHost(options)
  } catch (error) {
    // Its message already says how to recover (GU-43).
    if (error instanceof DatabaseError) throw new KikiError('internal_error', error.message, { cause: error })
    // A taken port is a conflict too, but only another host names the home.
    if (error instanceof KikiError && error.code === 'conflict' && error.data?.home !== undefined) {
      const [open, status, stop] = ['open', 'status', 'stop'].map((word) => `\`${nextCommand(command, word)}\``)
      const hint = `Open its settings page with ${open}, look at it with ${status}, or end it with ${stop}.`
      throw new KikiError(error.code, error.message, { hint, data: error.data, cause: error })
    }
    throw error
  }
}

/** The first SIGINT, SIGTERM or SIGHUP from now on; a second one ends the process as ever. */
function firstSignal(): { came: Promise<void>; seen(): boolean; forget(): void } {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const came = deferred<void>()
  let seen = false
  const forget = () => {
    for (const signal of signals) process.off(signal, hear)
  }
  const hear = () => {
    seen = true
    came.resolve()
    // Not at once: libraries that tidy up at a signal end the process themselves when nobody else is left who hears it.
    setImmediate(forget)
  }
  for (const signal of signals) process.on(signal, hear)
  return { came: came.promise, seen: () => seen, forget }
}

async function background(context: CommandContext, paths: HomePaths, flags: StartFlags, command: Command) {
  const running = await runningHost(paths, command)
  const started = running ?? (await startInBackground(paths, startArguments(flags), () => runningHost(paths, command)))
  if (!flags.unlessStopped) rmSync(paths.stopped, { force: true })
  await context.output.result(started, () => words(started, running !== undefined))
}

async function runningHost(paths: HomePaths, command: Command): Promise<Started | undefined> {
  const status = await hostStatus(command)
  if (!status) return undefined
  const { code } = await resultOf(ownerOf(command).api.login.codes.$post())
  const host = { pid: status.pid, home: status.home, ownerUrl: status.owner_url, socket: currentSocket(paths) }
  return describe(host, loginUrl(status.owner_url, code))
}

function describe(host: Pick<Host, 'pid' | 'home' | 'ownerUrl' | 'socket'>, login: string): Started {
  return {
    pid: host.pid,
    home: host.home,
    owner_url: host.ownerUrl,
    login_url: login,
    socket: host.socket,
    mcp_url: null,
  }
}

function words({ pid, home, login_url }: Started, already = false): string {
  return `Kiki ${already ? 'ran already' : 'runs'} (pid ${pid}) on ${home}.\nSettings page, signed in once by this link:\n  ${login_url}`
}

function port(text: string): string {
  if (!/^\d{1,5}$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError('Give a port from 0 to 65535.')
  return text
}

function configFlags({ port, logLevel }: StartFlags): Flag[] {
  return [
    ...(port === undefined ? [] : [{ flag: '--port', key: 'owner.port', value: port }]),
    ...(logLevel === undefined ? [] : [{ flag: '--log-level', key: 'log.level', value: logLevel }]),
  ]
}

function startArguments(flags: StartFlags): string[] {
  const given = configFlags(flags).flatMap(({ flag, value }) => [flag, value])
  return flags.unlessStopped ? ['--unless-stopped', ...given] : given
}
