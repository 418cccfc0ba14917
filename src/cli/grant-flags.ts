import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { PRESETS, type Preset } from '../grants/grant.js'
import { KikiError } from '../lib/errors.js'
import { MODES } from '../policy/modes.js'
import { expiry, limit, network, nullable, several, wholeNumber, words } from './values.js'

/** The options of `connections add` and `set`, as commander gives them (CL-04). */
export interface GrantFlags {
  name?: string
  preset?: Preset
  kind?: 'local' | 'remote' | 'token'
  tools?: string[]
  ceiling?: string
  allowCommands?: boolean
  network?: 'off' | 'on' | string[]
  dir?: string[]
  memory?: string[]
  history?: string
  exposure?: string
  sandbox?: string
  idempotency?: string
  inlineLimit?: number
  inlineMediaLimit?: number
  waitMs?: number
  rate?: number | 'none'
  concurrency?: number | 'none'
  template?: boolean
  templateWorkspace?: string
  templateMode?: string
  templateProfile?: string
  expires?: number | 'none'
}

export type Template = { workspace: string; mode?: string | undefined; profile?: string | undefined }

const modes = [...MODES, 'yolo']

export function addGrantFlags(command: Command): Command {
  const choice = (flags: string, text: string, values: readonly string[]) => {
    command.addOption(new Option(flags, text).choices(values))
  }
  choice('--preset <preset>', 'start from these fields', Object.keys(PRESETS))
  choice('--kind <kind>', 'how the client connects (default: local)', ['local', 'remote', 'token'])
  command.option('--tools <list>', 'families, tool names or patterns, with commas between', words)
  choice('--ceiling <mode>', 'the most that a session of it may do; yolo is another word for full', modes)
  command
    .option('--allow-commands', 'share commands, if the tools name shell')
    .option('--no-allow-commands', 'do not share commands')
    .option('--network <network>', 'network of commands: off, on, or hosts with commas between', network)
    .option('--dir <dir>', 'a folder beside the workspace that file tools may touch (repeatable)', several)
    .option('--memory <scopes>', 'workspace, global, with commas between', words)
  choice('--history <scope>', 'whose history it may read', ['current', 'connection', 'workspace'])
  choice('--exposure <way>', 'how tools reach it', ['direct', 'deferred', 'codemode'])
  choice('--sandbox <need>', 'confinement of commands', ['required', 'preferred', 'off'])
  choice('--idempotency <kind>', 'who makes the keys of side effects', ['required', 'auto'])
  command
    .option('--inline-limit <n>', 'characters of text answered inline', wholeNumber)
    .option('--inline-media-limit <n>', 'bytes of media answered inline', wholeNumber)
    .option('--wait-ms <n>', 'milliseconds that a call waits before it gets a receipt, at most 45000', wholeNumber)
    .option('--rate <n>', 'calls a minute, or none', limit)
    .option('--concurrency <n>', 'calls at once, or none', limit)
    .option('--template-workspace <dir>', 'a chat without a session gets one here')
  choice('--template-mode <mode>', 'mode of such a session; yolo is another word for full', modes)
  return command
    .option('--template-profile <name>', 'profile of such a session')
    .option('--no-template', 'chats get no session of their own')
    .option('--expires <when>', 'a date (UTC), a duration such as 30d, or none', expiry)
}

/**
 * The fields of a grant that the flags name; a preset's stand below the ones given beside it.
 * @param before the template that the connection has, which template flags change.
 * @throws KikiError `invalid_arguments` for template flags without a workspace.
 */
export function grantOf(flags: GrantFlags, before: Template | null = null): Record<string, unknown> {
  const given = {
    tools: flags.tools,
    ceiling: flags.ceiling,
    allow_commands: flags.allowCommands,
    network: flags.network,
    dirs: flags.dir?.map((dir) => resolve(dir)),
    memory: flags.memory,
    history: flags.history,
    exposure: flags.exposure,
    sandbox: flags.sandbox,
    idempotency: flags.idempotency,
    inline_text_limit: flags.inlineLimit,
    inline_media_limit: flags.inlineMediaLimit,
    wait_ms: flags.waitMs,
    rate: nullable(flags.rate),
    concurrency: nullable(flags.concurrency),
    template: templateOf(flags, before),
  }
  const preset = flags.preset === undefined ? {} : PRESETS[flags.preset]
  return { ...preset, ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) }
}

function templateOf(flags: GrantFlags, before: Template | null): Template | null | undefined {
  const { templateWorkspace, templateMode, templateProfile } = flags
  const untouched = [templateWorkspace, templateMode, templateProfile].every((value) => value === undefined)
  if (untouched) return flags.template === false ? null : undefined
  const workspace = templateWorkspace === undefined ? before?.workspace : resolve(templateWorkspace)
  if (workspace === undefined) {
    throw new KikiError('invalid_arguments', 'A template for sessions needs a workspace.', {
      hint: 'Give --template-workspace DIR too.',
    })
  }
  return {
    ...before,
    workspace,
    ...(templateMode !== undefined && { mode: templateMode }),
    ...(templateProfile !== undefined && { profile: templateProfile }),
  }
}
