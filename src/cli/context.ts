import type { Command } from 'commander'
import { defaultHome, type HomePaths, homePaths } from '../config/home.js'
import type { Output } from './output.js'

/** What every command is handed. */
export interface CommandContext {
  output: Output
}

/** The home that a command was told to use: `--home`, else `$KIKI_HOME`, else `~/.kiki`. */
export function homeOf(command: Command): HomePaths {
  const { home } = command.optsWithGlobals<{ home?: string }>()
  return homePaths(home ?? defaultHome())
}

/** Ends a command's help with an example (CL-18). */
export function withExample(command: Command, ...examples: string[]): Command {
  return command.addHelpText('after', `\nExample:\n${examples.map((line) => `  ${line}`).join('\n')}`)
}
