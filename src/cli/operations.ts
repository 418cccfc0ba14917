import { type Command, Option } from 'commander'
import { STATUSES } from '../store/operations.js'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { facts, printable, table, textOf } from './output.js'
import { resultOf } from './owner-client.js'
import { wholeNumber } from './values.js'

interface ListFlags {
  session?: string
  connection?: string
  status?: string
  limit: number
  before?: number
}

/** `kiki operations …` (CL-08). */
export function operationsCommand(program: Command, context: CommandContext): void {
  const operations = program.command('operations').description('every recorded tool call')
  withExample(operations, 'kiki operations list --status running')
  listCommand(operations, context)
  showCommand(operations, context)
  cancelCommand(operations, context)
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
        const rows = found.operations.map((one) =>
          [one.id, one.accepted_at, one.tool, one.status, one.error_code, one.session_ref].map(textOf),
        )
        const more = 'next_before' in found ? `\nOlder: add --before ${found.next_before}` : ''
        return table(['Operation', 'Accepted', 'Tool', 'Status', 'Error', 'Session'], rows, output.columns) + more
      })
    })
  withExample(list, 'kiki operations list --session ext_01 --status failed')
}

function showCommand(operations: Command, { output }: CommandContext): void {
  const show = operations.command('show').description('one call with its arguments and result').argument('<id>')
  show.action(async (id: string, _: unknown, command: Command) => {
    const one = await resultOf(ownerOf(command).api.operations[':id'].$get({ param: { id } }))
    await output.result(one, () => {
      const { result, ...operation } = one
      const shown = facts(operation, output.columns)
      return result === null ? shown : `${shown}\n${printable(result, { lines: true })}`
    })
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
