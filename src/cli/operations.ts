import { type Command, Option } from 'commander'
import { STATUSES } from '../store/operations.js'
import { type CommandContext, nextCommand, ownerOf, withExample } from './context.js'
import { noteWords, operationWords } from './operation-words.js'
import { printable, table, textOf } from './output.js'
import { resultOf } from './owner-client.js'
import { wholeNumber } from './values.js'

interface ListFlags {
  session?: string
  connection?: string
  status?: string
  limit: number
  before?: number
}

/** Columns from which a session's reference fits beside the rest. */
const WIDE = 140

/** `kiki operations …` (CL-08). */
export function operationsCommand(program: Command, context: CommandContext): void {
  const operations = program.command('operations').description('every recorded tool call')
  withExample(operations, 'kiki operations list --status running')
  listCommand(operations, context)
  showCommand(operations, context)
  cancelCommand(operations, context)
  resolveCommand(operations, context)
}

function listCommand(operations: Command, { output }: CommandContext): void {
  const list = operations.command('list').description('calls, newest first')
  list
    .option('--session <ref>', 'only of this session')
    .option('--connection <id>', 'only of this connection')
    .addOption(new Option('--status <status>', 'only in this state').choices(STATUSES))
    .option('--limit <n>', 'how many (1 to 200)', wholeNumber, 50)
    .option('--before <n>', 'only older ones, as the end of a list says', wholeNumber)
    .action(async ({ session, connection, status, limit, before }: ListFlags, command: Command) => {
      const query = {
        limit: String(limit),
        ...(session !== undefined && { session }),
        ...(connection !== undefined && { connection }),
        ...(status !== undefined && { status }),
        ...(before !== undefined && { before: String(before) }),
      }
      const found = await resultOf(ownerOf(command).api.operations.$get({ query }))
      await output.result(found, () => {
        if (found.operations.length === 0) return 'No operations.'
        // The reference of a session is long; on a narrow terminal whose call it was says more.
        const narrow = output.columns !== undefined && output.columns < WIDE
        const rows = found.operations.map((one) => {
          const status = one.error_code === null ? one.status : `${one.status}: ${one.error_code}`
          const whose = narrow ? one.connection : one.session_ref
          return [one.id, one.accepted_at, one.tool, one.target, status, whose].map(textOf)
        })
        const more = 'next_before' in found ? `\nOlder: add --before ${found.next_before}` : ''
        const head = ['Operation', 'Accepted', 'Tool', 'Touched', 'Status', narrow ? 'Connection' : 'Session']
        return table(head, rows, output.columns) + more
      })
    })
  withExample(list, 'kiki operations list --session ext_01 --status failed')
}

function showCommand(operations: Command, { output }: CommandContext): void {
  const show = operations.command('show').description('one call with its arguments and result').argument('<id>')
  show.action(async (id: string, _: unknown, command: Command) => {
    const one = await resultOf(ownerOf(command).api.operations[':id'].$get({ param: { id } }))
    await output.result(one, () => operationWords(one, nextCommand(command, `operations show ${id} --json`), output))
  })
  withExample(show, 'kiki operations show op_01')
}

function cancelCommand(operations: Command, { output }: CommandContext): void {
  const cancel = operations
    .command('cancel')
    .description('stop a call and every process that it began')
    .argument('<id>')
  cancel.action(async (id: string, _: unknown, command: Command) => {
    const now = await resultOf(ownerOf(command).api.operations[':id'].cancel.$post({ param: { id } }))
    await output.result(now, () => {
      if (!now.changed) return `${id} had already ended (${now.status}); nothing was changed.`
      const effects = now.effects_possible ? ' It had begun, so look at what it may have done.' : ''
      return `${id} is ${now.status}.${effects}`
    })
  })
  withExample(cancel, 'kiki operations cancel op_01')
}

interface ResolveFlags {
  happened?: boolean
  didNotHappen?: boolean
  note?: string
}

function resolveCommand(operations: Command, { output }: CommandContext): void {
  const resolve = operations
    .command('resolve')
    .description('note what became of a call whose outcome is unknown; the call itself stays as it is')
    .argument('<id>')
  resolve
    .option('--happened', 'it was done')
    .addOption(new Option('--did-not-happen', 'it was not done').conflicts('happened'))
    .option('--note <text>', 'what you found, up to 2000 characters')
    .action(async (id: string, { happened, didNotHappen, note }: ResolveFlags, command: Command) => {
      if (!happened && !didNotHappen) command.error('error: give --happened or --did-not-happen')
      const json = { found: happened ? ('happened' as const) : ('did_not_happen' as const), note: note ?? '' }
      const noted = await resultOf(ownerOf(command).api.operations[':id'].resolve.$post({ param: { id }, json }))
      await output.result(noted, () => printable(`Noted beside ${id}: ${noteWords(noted.note)}`))
    })
  withExample(resolve, "kiki operations resolve op_01 --happened --note 'the file is there'")
}
