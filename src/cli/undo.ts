import { type Command, InvalidArgumentError } from 'commander'
import { isOperation } from './changes.js'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { printable } from './output.js'
import { resultOf } from './owner-client.js'

interface UndoFlags {
  since?: string
  dryRun?: boolean
}

/** `kiki undo OP|REF` (CL-08): one operation's changes, or a session's. It is recorded and can itself be undone. */
export function undoCommand(program: Command, { output }: CommandContext): void {
  const undo = program
    .command('undo')
    .description("take back one operation's file changes, or a session's; refuses where a file changed since")
    .argument('<ref>', 'an operation (op_…) or a session (ext_…)')
  undo
    .option('--since <op>', 'of a session only what was changed from this operation on', operation)
    .option('--dry-run', 'say what would be done and change nothing')
    .action(async (ref: string, { since, dryRun }: UndoFlags, command: Command) => {
      const { api } = ownerOf(command)
      if (isOperation(ref) && since !== undefined) command.error('error: --since is for a session')
      const dry_run = dryRun === true
      const done = isOperation(ref)
        ? await resultOf(api.operations[':id'].undo.$post({ param: { id: ref }, json: { dry_run } }))
        : await resultOf(
            api.sessions[':ref'].undo.$post({
              param: { ref },
              json: { dry_run, ...(since !== undefined && { since }) },
            }),
          )
      await output.result(done, () => {
        const again = done.undone.length === 0 || dry_run ? '' : `\nTake this back with: kiki undo ${done.operation_id}`
        return `${printable(done.text, { lines: true })}${again}`
      })
    })
  withExample(undo, 'kiki undo op_01', 'kiki undo ext_01 --since op_01 --dry-run')
}

function operation(text: string): string {
  if (!isOperation(text)) throw new InvalidArgumentError('Give an operation, such as op_01.')
  return text
}
