import type { Command } from 'commander'
import { KikiError } from '../lib/errors.js'
import { type CommandContext, homeOf, ownerOf, withExample } from './context.js'
import { facts } from './output.js'
import { resultOf } from './owner-client.js'

/** `kiki status` (CL-02): what the host does now; that none runs is an answer too, not a failure. */
export function statusCommand(program: Command, { output }: CommandContext): void {
  const status = program.command('status').description('what the host does now')
  status.action(async (_: unknown, command: Command) => {
    const { dir } = homeOf(command)
    const now = await hostStatus(command)
    await output.result(now ?? { running: false, home: dir }, () => {
      if (now) return facts(now, output.columns)
      return `No host runs for ${dir}. Start it with \`kiki start\`.`
    })
  })
  withExample(status, 'kiki status', 'kiki status --json')
}

/** The status of the running host, or undefined where none answers. */
export async function hostStatus(command: Command) {
  try {
    return await resultOf(ownerOf(command).api.status.$get())
  } catch (error) {
    if (error instanceof KikiError && error.code === 'upstream_unavailable') return undefined
    throw error
  }
}
