import { resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { MODES } from '../policy/modes.js'
import { type CommandContext, confirm, nextCommand, ownerOf, withExample, yoloNote } from './context.js'
import { facts, table, textOf } from './output.js'
import { resultOf } from './owner-client.js'
import { wholeNumber } from './values.js'

interface NewSession {
  connection: string
  workspace: string
  mode?: string
  profile?: string
  title?: string
  worktree?: string
}

/** `kiki sessions …` (CL-06, CL-07). */
export function sessionsCommand(program: Command, context: CommandContext): void {
  const sessions = program.command('sessions').description('conversations, each bound to a connection and a workspace')
  withExample(sessions, 'kiki sessions create --connection client_01 --workspace .', 'kiki sessions list')
  createCommand(sessions, context)
  listCommand(sessions, context)
  showCommand(sessions, context)
  closeCommand(sessions, context)
  deleteCommand(sessions, context)
}

function createCommand(sessions: Command, { output }: CommandContext): void {
  const create = sessions.command('create').description('make a session that the client can resume')
  create
    .requiredOption('--connection <id>', 'whose session it is')
    .requiredOption('--workspace <dir>', 'the folder that it works in')
    .addOption(
      new Option('--mode <mode>', 'what it does without asking; yolo is another word for full').choices([
        ...MODES,
        'yolo',
      ]),
    )
    .option('--profile <name>', 'a profile of config.toml')
    .option('--title <title>', 'a title of 1 to 200 characters')
    .option('--worktree <branch>', 'work in a git worktree of the workspace on this branch, new or checked out nowhere')
    .action(async ({ workspace, ...given }: NewSession, command: Command) => {
      const { connection, mode, profile, title, worktree } = given
      const json = {
        connection,
        workspace: resolve(workspace),
        ...(mode !== undefined && { mode }),
        ...(profile !== undefined && { profile }),
        ...(title !== undefined && { title }),
        ...(worktree !== undefined && { worktree }),
      }
      const made = await resultOf(ownerOf(command).api.sessions.$post({ json }))
      await output.result(made, () => {
        const client = `--client ${made.connection} --session ${made.session_ref}`
        const next = `Next: ${nextCommand(command, `connect NAME-OF-CLIENT ${client}`)}`
        const head = facts(shownFields(made), output.columns)
        return [head, ...filterNote(made.worktree), ...yoloNote(mode), next].join('\n')
      })
    })
  withExample(create, 'kiki sessions create --connection client_01 --workspace ~/code/app --mode manual')
}

function listCommand(sessions: Command, { output }: CommandContext): void {
  const list = sessions.command('list').description('sessions, newest first')
  list
    .option('--connection <id>', 'only of this connection')
    .addOption(new Option('--status <status>', 'only in this state').choices(['open', 'closed']))
    .option('--limit <n>', 'how many (1 to 200)', wholeNumber, 100)
    .option('--offset <n>', 'how many to pass over', wholeNumber, 0)
    .action(async ({ connection, status, limit, offset }: ListFlags, command: Command) => {
      const query = {
        limit: String(limit),
        offset: String(offset),
        ...(connection !== undefined && { connection }),
        ...(status !== undefined && { status }),
      }
      const found = await resultOf(ownerOf(command).api.sessions.$get({ query }))
      await output.result(found, () => {
        if (found.sessions.length === 0) return 'No sessions.'
        const rows = found.sessions.map((one) =>
          [one.session_ref, one.title, one.connection, one.workspace, one.mode, statusOf(one), one.last_activity].map(
            textOf,
          ),
        )
        const head = ['Session', 'Title', 'Connection', 'Workspace', 'Mode', 'Status', 'Last activity']
        const more = 'next_offset' in found ? `\nMore: add --offset ${found.next_offset}` : ''
        return table(head, rows, output.columns) + more
      })
    })
  withExample(list, 'kiki sessions list --status open')
}

interface Shown {
  status: string
  connection_status: string
  worktree: { repository: string; branch: string; filters_off: string[] } | null
}

/** One line a field; of a worktree what a person asks first. */
function shownFields<T extends Shown>({ connection_status, worktree, ...shown }: T) {
  const status = statusOf({ status: shown.status, connection_status })
  if (worktree === null) return { ...shown, status }
  return { ...shown, status, branch: worktree.branch, worktree_of: worktree.repository }
}

function filterNote(worktree: Shown['worktree']): string[] {
  if (worktree === null || worktree.filters_off.length === 0) return []
  const names = worktree.filters_off.join(', ')
  return [`Its files are as git stores them: the filters that they need (${names}) are programs, and Kiki ran none.`]
}

/** A session of a revoked connection is open in name only. */
function statusOf({ status, connection_status }: { status: string; connection_status: string }): string {
  return connection_status === 'active' ? status : `${status} (connection ${connection_status})`
}

interface ListFlags {
  connection?: string
  status?: string
  limit: number
  offset: number
}

function showCommand(sessions: Command, { output }: CommandContext): void {
  const show = sessions.command('show').description('one session with its saved texts').argument('<ref>')
  show.action(async (ref: string, _: unknown, command: Command) => {
    const one = await resultOf(ownerOf(command).api.sessions[':ref'].$get({ param: { ref } }))
    await output.result(one, () => {
      const { saved_texts: texts, ...session } = one
      const rows = texts.map((text) => [text.created_at, text.kind, text.title, text.source].map(textOf))
      const saved = rows.length === 0 ? [] : [table(['Saved', 'Kind', 'Title', 'Source'], rows, output.columns)]
      return [facts(shownFields(session), output.columns), ...saved].join('\n')
    })
  })
  withExample(show, 'kiki sessions show ext_01')
}

function closeCommand(sessions: Command, { output }: CommandContext): void {
  const close = sessions.command('close').description('end a session and its unfinished work').argument('<ref>')
  close.action(async (ref: string, _: unknown, command: Command) => {
    const closed = await resultOf(ownerOf(command).api.sessions[':ref'].close.$post({ param: { ref } }))
    await output.result(closed, () =>
      [
        `${ref} is ${closed.status}; ${closed.cancelled} unfinished operations were cancelled.`,
        ...endedNote(closed.ended_worktree),
      ].join('\n'),
    )
  })
  withExample(close, 'kiki sessions close ext_01')
}

function endedNote(ended: { says: string } | null): string[] {
  return ended === null ? [] : [ended.says]
}

function deleteCommand(sessions: Command, context: CommandContext): void {
  const remove = sessions.command('delete').description('delete a session and its results').argument('<ref>')
  remove.option('--yes', 'do not ask').action(async (ref: string, flags: { yes?: boolean }, command: Command) => {
    await confirm(context, flags, `Deleting session ${ref} with its results`)
    const done = await resultOf(ownerOf(command).api.sessions[':ref'].$delete({ param: { ref } }))
    await context.output.result(done, () => [`${ref} is deleted.`, ...endedNote(done.ended_worktree)].join('\n'))
  })
  withExample(remove, 'kiki sessions delete ext_01 --yes')
}
