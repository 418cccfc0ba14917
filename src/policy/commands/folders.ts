import { unionOf } from './classes.js'
import { isElsewhere, looksSecret, normalPath } from './paths.js'
import { classesOfDeleting } from './tables/files.js'
import type { SimpleCommand, Word } from './types.js'

/** `cd / && rm -rf *`: after a change of folder, what is near is no longer the workspace. */
export function markLoss(commands: readonly SimpleCommand[]): SimpleCommand[] {
  let folder = '.'
  return commands.map((command) => {
    folder = folderAfter(folder, command)
    if (folder === '.' || !command.classes.includes('file_delete')) return command
    const near = command.words.slice(1).filter((word) => !word.value.startsWith('-') && !isElsewhere(word.value))
    const lost = near.flatMap((word) => classesOfDeleting({ ...word, value: `${folder}/${word.value}` }, true))
    return { ...command, classes: unionOf(command.classes, lost) }
  })
}

/**
 * What commands do in other folders than the session's own. Loops run commands in another order than they are
 * written, so each folder of the script counts for each of its commands.
 */
export function markFolders(commands: readonly SimpleCommand[]): SimpleCommand[] {
  const folders = foldersOf(commands)
  if (folders.length === 0) return [...commands]
  return commands.map((command) => {
    // A repository's own settings name programs (core.fsmonitor), and a client may have written them.
    const runs = command.program === 'git' ? (['code_execution'] as const) : []
    const reads = folders.some((folder) => readsSecret(folder, command)) ? (['secret_access'] as const) : []
    return runs.length + reads.length > 0
      ? { ...command, classes: unionOf(command.classes, [...runs, ...reads]) }
      : command
  })
}

function foldersOf(commands: readonly SimpleCommand[]): string[] {
  const found = new Set<string>()
  let folder = '.'
  for (const command of commands) {
    folder = folderAfter(folder, command)
    found.add(folder)
    for (const target of movedBy(command)) found.add(joined(folder, target))
  }
  found.delete('.')
  return [...found]
}

/** Where relative paths lead after `cd`: an unknown folder may be the home, which is where a bare `cd` goes. */
function folderAfter(folder: string, command: SimpleCommand): string {
  if (!/^(?:cd|pushd)$/.test(command.program)) return folder
  const target = command.words.slice(1).find((word) => !/^-./.test(word.value))
  return target === undefined || !target.known ? '~' : joined(folder, target.value)
}

function joined(folder: string, target: string): string {
  return /^[/~]/.test(target) ? normalPath(target) : normalPath(`${folder}/${target}`)
}

/** `env -C DIR`, `sudo -D DIR`. */
function movedBy({ program, words }: SimpleCommand): string[] {
  if (!/^(?:env|sudo)$/.test(program)) return []
  return words.flatMap((word, at) => {
    const [, value] = /^(?:-[a-zA-Z0-9]*[CD]|--ch\w*=?)(.*)$/s.exec(word.value) ?? []
    return value === undefined ? [] : [value || (words[at + 1]?.value ?? '~')]
  })
}

// What shows no file's text.
const NAMES_ONLY = /^(?:cd|pushd|popd|dirs|pwd|ls|echo|printf|true|false|test|\[|\[\[|env|sudo)$/
const PRIVATE_FOLDER = /^(?:~|\/root|\/(?:home|Users)\/[^/]+)\/\.[^/]|^\/proc(?:\/|$)/

function readsSecret(folder: string, { program, words, redirections }: SimpleCommand): boolean {
  const targets = redirections.map((one) => one.target).filter((one) => one !== undefined)
  if (looksSecret(folder) || PRIVATE_FOLDER.test(folder)) return !NAMES_ONLY.test(program) || targets.length > 0
  const near = (word: Word) => !isElsewhere(word.value) && looksSecret(joined(folder, word.value))
  return [...(NAMES_ONLY.test(program) ? [] : words.slice(1)), ...targets].some(near)
}
