import type { Command } from 'commander'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { printable, table, textOf } from './output.js'
import { resultOf } from './owner-client.js'
import { wholeNumber } from './values.js'

interface ChangesFlags {
  diff?: boolean
  limit: number
  before?: number
}

/** `kiki changes REF [--diff]` (CL-08). */
export function changesCommand(program: Command, { output }: CommandContext): void {
  const changes = program
    .command('changes')
    .description('what file tools changed in a session or by one operation')
    .argument('<ref>', 'a session (ext_…) or an operation (op_…)')
  changes
    .option('--diff', 'show each change as a difference')
    .option('--limit <n>', 'how many operations (1 to 200)', wholeNumber, 50)
    .option('--before <n>', 'only older ones, as the end of a list says', wholeNumber)
    .action(async (ref: string, { diff, limit, before }: ChangesFlags, command: Command) => {
      const query = {
        ...(isOperation(ref) ? { operation: ref } : { session: ref }),
        limit: String(limit),
        ...(before !== undefined && { before: String(before) }),
        ...(diff === true && { diff: 'true' as const }),
      }
      const found = await resultOf(ownerOf(command).api.changes.$get({ query }))
      await output.result(found, () => {
        const more = 'next_before' in found ? `\nOlder: add --before ${found.next_before}` : ''
        const shown = diff === true ? found.changes.map(withDiff).join('\n') : list(found.changes, output.columns)
        return `${found.changes.length === 0 ? 'No recorded changes.' : shown}${more}\n${found.note}`
      })
    })
  withExample(changes, 'kiki changes ext_01', 'kiki changes op_01 --diff')
}

export function isOperation(ref: string): boolean {
  return ref.startsWith('op_')
}

interface Change {
  operation: string
  at: string | null
  tool: string
  by: string
  kind: string
  path: string
  to: string | null
  undone_by: string | null
  diff?: string
  diff_note?: string
}

function list(changes: readonly Change[], columns: number | undefined): string {
  const rows = changes.map((one) =>
    [one.operation, one.at, one.by === 'owner' ? `${one.tool} (owner)` : one.tool, words(one), one.undone_by].map(
      textOf,
    ),
  )
  return table(['Operation', 'At', 'Tool', 'Change', 'Undone by'], rows, columns)
}

function words({ kind, path, to }: Change): string {
  return `${kind} ${path}${to === null ? '' : ` to ${to}`}`
}

function withDiff(change: Change): string {
  const undone = change.undone_by === null ? '' : ` (undone by ${change.undone_by})`
  const head = printable(`${change.operation} ${change.tool}: ${words(change)}${undone}`)
  const rest = [change.diff, change.diff_note].filter((part) => part !== undefined && part !== '')
  return [head, ...rest.map((part) => printable(part ?? '', { lines: true }))].join('\n')
}
