import type { Command } from 'commander'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { printable, table } from './output.js'
import { resultOf } from './owner-client.js'

/** Characters of a command in the list. */
const SHOWN = 60

/** `kiki processes list|stop`: commands that clients run in the background. */
export function processesCommand(program: Command, context: CommandContext): void {
  const processes = program.command('processes').description('commands that clients run in the background')
  withExample(processes, 'kiki processes list', 'kiki processes stop proc_01')
  listCommand(processes, context)
  stopProcessCommand(processes, context)
}

function listCommand(processes: Command, { output }: CommandContext): void {
  const list = processes.command('list').description('the newest 50, running or over')
  list.option('--session <ref>', 'of one session').option('--connection <id>', 'of one connection')
  list.action(async (flags: { session?: string; connection?: string }, command: Command) => {
    const found = await resultOf(ownerOf(command).api.processes.$get({ query: flags }))
    await output.result(found, () => {
      if (found.processes.length === 0) return 'No client has started anything in the background.'
      const rows = found.processes.map((one) => [
        one.id,
        one.session_ref,
        one.state,
        one.started_at ?? '',
        short(one.command),
      ])
      return table(['Id', 'Session', 'State', 'Started', 'Command'], rows, output.columns)
    })
  })
  withExample(list, 'kiki processes list', 'kiki processes list --session ext_01')
}

function stopProcessCommand(processes: Command, { output }: CommandContext): void {
  const stop = processes.command('stop').description('end one with everything that it started').argument('<id>')
  stop.action(async (id: string, _: unknown, command: Command) => {
    const done = await resultOf(ownerOf(command).api.processes[':id'].stop.$post({ param: { id } }))
    await output.result(done, () =>
      printable(done.changed ? `${id} is ended.` : `${id} was over already: ${done.state}.`),
    )
  })
  withExample(stop, 'kiki processes stop proc_01')
}

function short(command: string): string {
  const line = printable(command.split('\n')[0] ?? '')
  return line.length > SHOWN || line !== command ? `${line.slice(0, SHOWN)} …` : line
}
