import { z } from 'zod'
import { settledWithin, startTimer } from '../../lib/async.js'
import { KikiError } from '../../lib/errors.js'
import { shellWord } from '../../lib/shell-word.js'
import type { RunningCommand } from '../../processes/command.js'
import type { OutputWriter } from '../../processes/output/writer.js'
import type { AllowedHosts } from '../../sandbox/network.js'
import { resolvePath } from '../../workspace/files.js'
import { defineTool, type ToolContext, type ToolResult, text } from '../tool.js'
import { type CommandEnd, resultOf } from './command-result.js'
import { commandEnvironment } from './environment.js'
import type { CommandPlace, CommandTerms } from './shell.js'
import { shellWords } from './shell-words.js'

const DEFAULT_TIMEOUT_MS = 600_000
const MAX_TIMEOUT_MS = 86_400_000
/** After this what a command has written is in files, so that it outlives the host. */
const SAVE_MS = 1000
/** How long output may stay open after all has ended: only what is not seen can hold it. */
const DRAIN_MS = 500
/** How long a background command is looked at before it is answered, so that one that fails at once says so. */
const FIRST_LOOK_MS = 300
const TERMINAL = { columns: 120, rows: 40 }

const input = z.strictObject({
  command: z
    .string()
    .min(1)
    .max(100_000)
    .refine((script) => !script.includes('\0'), 'must not hold a NUL character'),
  description: z.string().max(500).optional().describe('What it is for, for the owner.'),
  timeout_ms: z.int().min(1).max(MAX_TIMEOUT_MS).default(DEFAULT_TIMEOUT_MS),
  cwd: z.string().min(1).optional().describe('Folder; default: the workspace.'),
  env: z
    .record(
      z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/),
      z.string().refine((value) => !value.includes('\0')),
    )
    .optional(),
  background: z.boolean().default(false).describe('true: keep it running, answer at once with a process_id.'),
  tty: z.boolean().default(false).describe('true: a pseudo-terminal.'),
})

type Input = z.infer<typeof input>

/** SH-01 to SH-06. */
export const bash = defineTool<Input>({
  name: 'Bash',
  title: 'Run a command',
  description:
    'Runs a bash script in the workspace and returns its output, exit code and duration. Each call begins in the ' +
    'workspace with a fresh shell. Standard input is empty: a program that asks a question fails. Processes that are ' +
    'left when the shell ends are ended; for servers and long work use background: true, then ProcessOutput and ' +
    'ProcessInput. Ends after timeout_ms (10 minutes, at most 24 hours). Output is kept up to 256 MB and paged. ' +
    'Changes made by commands cannot be undone here. The owner may be asked, and may have it run in a sandbox: only ' +
    'the workspace and /tmp are writable, and the network may be off.',
  effect: 'execute',
  family: 'shell',
  input,
  command: scriptForRules,
  runsCommand: true,
  async run(context, args) {
    const { shell, workspace } = context
    const place = await shell.place(termsOf(context), workspace)
    const output = shell.outputs.open(context.operationId)
    const command = await start(context, place, args).catch((error: unknown) => {
      output.end()
      throw error
    })
    return args.background
      ? background(context, place, args, command, output)
      : foreground(context, place, args, command, output)
  },
})

/** What rules and classes see: folder and variables are part of what it does. */
export function scriptForRules({ command, cwd, env = {} }: Pick<Input, 'command' | 'cwd' | 'env'>): string {
  const word = (value: string) => shellWord(value, 'linux')
  const names = Object.entries(env).map(([name, value]) => `export ${name}=${word(value)}\n`)
  return `${cwd === undefined ? '' : `cd ${word(cwd)}\n`}${names.join('')}${command}`
}

export function termsOf({ session, grant }: ToolContext): CommandTerms {
  const { sandbox, network } = grant
  return {
    session: session.ref,
    connection: session.connectionId,
    policyVersion: session.policyVersion,
    sandbox,
    network,
  }
}

async function start(context: ToolContext, place: CommandPlace, args: Input): Promise<RunningCommand> {
  const { shell, workspace, operationId } = context
  const config = shell.config().commands
  const hosts = hostsOf(context)
  const network = hosts === undefined ? undefined : await place.allow(hosts)
  const revoke = () => network?.revoke()
  try {
    const command = await place.run({
      argv: shellWords(args.command, process.platform, config.windows_shell),
      cwd: folderOf(context, args.cwd),
      env: commandEnvironment({
        ...{ host: shell.hostEnvironment, pass: config.pass_env, terminal: args.tty, operationId },
        given: { ...network?.env, ...args.env },
        writable: place.confined ? workspace.roots : undefined,
      }),
      // A background command outlives its operation: what ends it is its session, its grant or the host.
      signal: args.background ? new AbortController().signal : context.signal,
      script: process.platform !== 'win32',
      input: args.background,
      keep: args.background,
      ...(args.tty ? { terminal: TERMINAL } : {}),
    })
    command.exited.then(revoke, revoke)
    return command
  } catch (error) {
    revoke()
    throw error
  }
}

/** What a command reaches beside its sandbox's own loopback; one that needs the network where that is off was asked about. */
function hostsOf({ grant: { network }, needsNetwork }: ToolContext): AllowedHosts | undefined {
  if (network === 'on') return undefined
  if (network === 'off') return needsNetwork ? 'any' : undefined
  return network
}

function folderOf({ workspace }: ToolContext, cwd: string | undefined): string {
  if (cwd === undefined) return workspace.root
  const { path, type, display } = resolvePath(workspace, cwd)
  if (type === 'directory') return path
  throw new KikiError(type === undefined ? 'not_found' : 'invalid_arguments', `"${display}" is no folder to run in.`, {
    hint: 'Leave cwd out to run in the workspace.',
  })
}

async function foreground(
  context: ToolContext,
  place: CommandPlace,
  args: Input,
  command: RunningCommand,
  output: OutputWriter,
): Promise<ToolResult> {
  const began = performance.now()
  let timedOut = false
  const stopTimer = startTimer(args.timeout_ms, () => {
    timedOut = true
    command.end()
  })
  const stopSaving = startTimer(SAVE_MS, () => output.save())
  const closed = new Promise<void>((resolve) => command.output.once('close', () => resolve()))
  command.output.on('data', (chunk: Buffer) => {
    output.push(chunk)
    context.progress(output.tail())
  })
  command.output.resume()
  try {
    const ended = await command.exited.catch(failureOf)
    await settledWithin(closed, DRAIN_MS)
    const end: CommandEnd = {
      ...{
        ended,
        timedOut,
        timeoutMs: args.timeout_ms,
        kept: output.end(),
        unconfined: !place.confined,
        wanted: context.grant.sandbox !== 'off',
        planted: place.removePlanted(),
      },
      ms: Math.round(performance.now() - began),
      cancelled: context.signal.aborted,
    }
    return resultOf(end)
  } finally {
    stopTimer()
    stopSaving()
    command.output.destroy()
  }
}

function failureOf(error: unknown): KikiError {
  if (error instanceof KikiError) return error
  throw error
}

async function background(
  context: ToolContext,
  place: CommandPlace,
  args: Input,
  command: RunningCommand,
  output: OutputWriter,
): Promise<ToolResult> {
  const { shell, session, operationId } = context
  const row = shell.background.add(
    {
      ...{ operation_id: operationId, connection_id: session.connectionId, session_ref: session.ref },
      ...{ policy_version: session.policyVersion, command: args.command, cwd: folderOf(context, args.cwd) },
    },
    command,
    output,
  )
  // Cancelled or revoked while it started: then it does not go on.
  if (context.signal.aborted) {
    await shell.background.end(({ id }) => id === row.id)
    throw new KikiError('cancelled', 'It was ended while it started.')
  }
  await settledWithin(command.exited, FIRST_LOOK_MS, context.signal)
  const waitMs = 0
  const page = await shell.background.read(row, {
    cursor: 0,
    limit: context.limits.inlineText,
    waitMs,
    signal: context.signal,
  })
  const next = { tool: 'ProcessOutput', arguments: { process_id: row.id, cursor: page.next } }
  const how = page.row.status === 'running' ? `runs as ${row.id}` : `was started as ${row.id} and is over already`
  const told = `It ${how}. Read on with ProcessOutput ${JSON.stringify(next.arguments)}${place.confined || context.grant.sandbox === 'off' ? '' : '\nNo sandbox works here: it runs with the rights of the owner.'}`
  return text(page.text === '' ? told : `${page.text}\n${told}`, {
    ...{ process_id: row.id, status: page.row.status, exit_code: page.row.exit_code, cursor: page.next, next },
    ...(place.confined ? {} : { unconfined: true }),
  })
}
