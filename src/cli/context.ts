import type { Command } from 'commander'
import { defaultHome, type HomePaths, homePaths } from '../config/home.js'
import { KikiError } from '../lib/errors.js'
import type { Output } from './output.js'
import { createOwnerClient } from './owner-client.js'

/** What every command is handed. */
export interface CommandContext {
  output: Output
  /** Asks the owner in the terminal; undefined where nobody can answer. */
  ask: ((question: string) => Promise<string>) | undefined
}

/** The home that a command was told to use: `--home`, else `$KIKI_HOME`, else `~/.kiki`. */
export function homeOf(command: Command): HomePaths {
  const { home } = command.optsWithGlobals<{ home?: string }>()
  return homePaths(home ?? defaultHome())
}

/** The owner API of the host that a command was told to use. */
export function ownerOf(command: Command) {
  return createOwnerClient(homeOf(command))
}

/**
 * Makes sure that the owner means it: `--yes`, or a yes in the terminal.
 * @throws KikiError `invalid_arguments` where nobody can be asked, `cancelled` for another answer.
 */
export async function confirm({ ask }: CommandContext, { yes }: { yes?: boolean }, what: string): Promise<void> {
  if (yes) return
  if (!ask) throw new KikiError('invalid_arguments', `${what} needs a confirmation.`, { hint: 'Repeat it with --yes.' })
  const answer = await ask(`${what}. Type yes to go on: `)
  if (answer.trim().toLowerCase() === 'yes') return
  throw new KikiError('cancelled', 'Nothing was done.', { hint: 'Repeat it and answer yes, or add --yes.' })
}

/** Ends a command's help with an example (CL-18). */
export function withExample(command: Command, ...examples: string[]): Command {
  return command.addHelpText('after', `\nExample:\n${examples.map((line) => `  ${line}`).join('\n')}`)
}
