import type { Command } from 'commander'
import { type LoadedConfig, loadConfig, type Origin } from '../config/load.js'
import { formatProblem } from '../config/problems.js'
import { type CommandContext, homeOf, withExample } from './context.js'
import { table } from './output.js'

/** `kiki config show [--origin]` (CF-03). Needs no running host: it shows what a host would read now. */
export function configCommand(program: Command, { output }: CommandContext): void {
  const config = program.command('config').description('the settings of config.toml and the environment')
  withExample(config, 'kiki config show --origin')
  const show = config
    .command('show')
    .description('print every setting as a host that starts now would read it')
    .option('--origin', 'tell where each value is from')
    .action(async ({ origin }: { origin?: boolean }, command: Command) => {
      const { config: file } = homeOf(command)
      const loaded = await loadConfig({ file })
      for (const warning of loaded.warnings) await output.note(`warning: ${formatProblem(warning)}`)
      const { config: values, origins, warnings } = loaded
      const value = { file, config: values, ...(origin && { origins }), warnings }
      await output.result(value, () => settingsTable(loaded, origin === true, output.columns))
    })
  withExample(show, 'kiki config show --origin', 'kiki config show --json')
}

function settingsTable({ origins, settings }: LoadedConfig, withOrigin: boolean, columns: number | undefined): string {
  const rows = settings.map(({ key, value }) => {
    const cells = [key, JSON.stringify(value)]
    const origin = origins[key]
    return withOrigin && origin ? [...cells, describeOrigin(origin)] : cells
  })
  return table(withOrigin ? ['Setting', 'Value', 'From'] : ['Setting', 'Value'], rows, columns)
}

function describeOrigin(origin: Origin): string {
  switch (origin.from) {
    case 'default':
      return 'default'
    case 'environment':
      return `environment ${origin.variable}`
    case 'flag':
      return `flag ${origin.flag}`
    case 'file':
      return [origin.file, origin.line, origin.column].filter((part) => part !== undefined).join(':')
  }
}
