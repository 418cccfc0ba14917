import type { Command } from 'commander'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { cancelledWords, printable } from './output.js'
import { resultOf } from './owner-client.js'

/** `kiki reload` (CF-04): what may change without a restart is read from config.toml again. */
export function reloadCommand(program: Command, { output }: CommandContext): void {
  const reload = program.command('reload').description('read config.toml again; a bad file changes nothing')
  reload.action(async (_: unknown, command: Command) => {
    const done = await resultOf(ownerOf(command).api.policy.reload.$post())
    for (const warning of done.warnings) await output.note(`warning: ${printable(warning)}`)
    await output.result(done, () => {
      const restart =
        done.restart_for.length === 0
          ? ''
          : ` A restart is needed for: ${done.restart_for.map((key) => printable(key)).join(', ')}.`
      const rules = `${done.rules} ${done.rules === 1 ? 'rule' : 'rules'}`
      return `config.toml was read again, with ${rules}. ${cancelledWords(done.cancelled)}${restart}`
    })
  })
  withExample(reload, 'kiki reload')
}
