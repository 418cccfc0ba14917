import { resolve } from 'node:path'
import type { Command } from 'commander'
import { systemClock } from '../lib/clock.js'
import { type CommandContext, homeOf, nextCommand, withExample } from './context.js'

/** `kiki restore FILE` (CL-17): only while no host runs; what was in the home is kept beside (GU-43). */
export function restoreCommand(program: Command, { output }: CommandContext): void {
  const restore = program
    .command('restore')
    .description('put a backup in the place of the home; the host must be stopped')
    .argument('<file>', 'a file that `kiki backup` made')
  restore.action(async (file: string, _: unknown, command: Command) => {
    const { restoreHome } = await import('../lifecycle/restore.js')
    const done = restoreHome({ home: homeOf(command).dir, file: resolve(file), clock: systemClock })
    for (const warning of done.warnings) await output.note(`warning: ${warning}`)
    await output.result(done, () =>
      [
        `Restored ${done.home} from the backup of ${done.backup.made_at}.`,
        ...(done.kept === null ? [] : [`What was there before is in ${done.kept}.`]),
        ...(done.unfinished === 0
          ? []
          : [`${done.unfinished} operations were unfinished then; they do not run again.`]),
        'Grants are as they were then: look at `kiki connections list` for what was revoked since.',
        `Start it with \`${nextCommand(command, 'start')}\`.`,
      ].join('\n'),
    )
  })
  withExample(restore, 'kiki stop', 'kiki restore ~/backups/kiki.backup')
}
