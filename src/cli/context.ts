import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Command } from 'commander'
import { defaultHome, type HomePaths, homePaths } from '../config/home.js'
import { KikiError, systemCode } from '../lib/errors.js'
import { shellWord } from '../lib/shell-word.js'
import type { Output } from './output.js'
import { createOwnerClient } from './owner-client.js'

/** What every command is handed. */
export interface CommandContext {
  output: Output
  /** Asks the owner in the terminal; undefined where nobody can answer. */
  ask: ((question: string) => Promise<string>) | undefined
}

/**
 * The home that a command was told to use: `--home`, else `$KIKI_HOME`, else `~/.kiki`.
 * @throws KikiError `conflict` where a file stands there or above it.
 */
export function homeOf(command: Command): HomePaths {
  const { home } = command.optsWithGlobals<{ home?: string }>()
  const dir = resolve(home ?? defaultHome())
  if (isBlocked(dir)) {
    throw new KikiError('conflict', `The home ${dir} cannot be a folder: a file stands there or above it.`, {
      hint: 'Move the file away, or choose another --home.',
    })
  }
  return homePaths(dir)
}

/** A folder that is not there yet, or that may not be looked at, is for the command to judge. */
function isBlocked(dir: string): boolean {
  try {
    return !statSync(dir).isDirectory()
  } catch (error) {
    return systemCode(error) === 'ENOTDIR'
  }
}

/** A command line to run next, with the home that this one was given. */
export function nextCommand(command: Command, words: string): string {
  const { home } = command.optsWithGlobals<{ home?: string }>()
  return `kiki ${words}${home === undefined ? '' : ` --home ${shellWord(resolve(home), process.platform)}`}`
}

/** `yolo` is a word that a client's user may know; the owner is told once more what it means. */
export function yoloNote(...modes: readonly (string | undefined)[]): string[] {
  return modes.includes('yolo') ? ['yolo is another word for full: everything runs without asking.'] : []
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
