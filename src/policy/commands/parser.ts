import { createRequire } from 'node:module'
import { Language, Parser } from 'web-tree-sitter'
import { type CommandClass, unionOf } from './classes.js'
import { collect } from './collect.js'
import { markFolders, markLoss } from './folders.js'
import { looksSecret } from './paths.js'
import { refusalsOfText, withoutDisguise } from './precheck.js'
import { recoveredClasses } from './recover.js'
import { resolveCommand } from './resolve.js'
import { type SyntaxNode, toSyntax } from './syntax.js'
import { doubtsAboutTokens } from './tokens.js'
import type { Assignment, ParsedScript, Redirection, SimpleCommand } from './types.js'

/** Reads shell scripts without running anything. */
export interface ShellParser {
  /**
   * Takes a script apart into simple commands and classes each (PO-04, CC-01). Never throws: what cannot be read
   * comes back `opaque`. At most 32,768 characters, 6 scripts within one another.
   */
  parse(script: string): ParsedScript
}

const DEPTH_LIMIT = 6

/** Loads tree-sitter's bash grammar once; `parse` is synchronous after that. Rejects where the files are missing. */
export async function openShellParser(): Promise<ShellParser> {
  await Parser.init()
  const files = createRequire(import.meta.url)
  const language = await Language.load(files.resolve('tree-sitter-bash/tree-sitter-bash.wasm'))
  const parser = new Parser()
  parser.setLanguage(language)
  const read = (text: string): SyntaxNode | undefined => {
    const tree = parser.parse(text)
    if (tree === null) return undefined
    try {
      return toSyntax(tree.rootNode)
    } finally {
      tree.delete()
    }
  }
  return { parse: (script) => parseScript(script, read, 0) }
}

type Read = (text: string) => SyntaxNode | undefined

interface Building {
  commands: SimpleCommand[]
  redirections: Redirection[]
  assignments: Assignment[]
  reasons: string[]
  classes: CommandClass[]
}

function parseScript(script: string, read: Read, depth: number): ParsedScript {
  const built: Building = {
    commands: [],
    redirections: [],
    assignments: [],
    reasons: refusalsOfText(script),
    classes: [],
  }
  const text = built.reasons.length > 0 ? withoutDisguise(script) : script
  if (depth > DEPTH_LIMIT) built.reasons.push('too many scripts within one another')
  else build(text, read, depth, built)
  return finish(script, built)
}

function build(text: string, read: Read, depth: number, built: Building): void {
  const root = read(text)
  if (root === undefined) {
    built.reasons.push('it cannot be parsed')
    return
  }
  if (root.broken) built.reasons.push('it cannot be parsed')
  else built.reasons.push(...doubtsAboutTokens(root, text))
  const found = collect(root, text)
  built.reasons.push(...found.reasons)
  built.redirections.push(...found.redirections)
  built.assignments.push(...found.assignments)
  if (found.forkBomb) built.classes.push('destructive', 'process_control')
  for (const raw of found.commands) {
    const resolved = resolveCommand(raw, { parse: (inner) => parseScript(inner, read, depth + 1) })
    const base = built.commands.length
    built.reasons.push(...resolved.reasons)
    built.redirections.push(...raw.redirections)
    built.assignments.push(...raw.assignments)
    built.commands.push(...resolved.commands.map((one) => shifted(one, base)))
    for (const { script, parent, via } of resolved.nested) addNested(script, base + parent, via, built)
  }
}

function shifted(command: SimpleCommand, base: number): SimpleCommand {
  return command.parent === undefined ? command : { ...command, parent: command.parent + base }
}

function addNested(script: ParsedScript, parent: number, via: readonly string[], built: Building): void {
  const base = built.commands.length
  if (script.opaque !== undefined) built.reasons.push(script.opaque.reason)
  built.classes.push(...script.classes.filter((one) => one !== 'read_only'))
  built.redirections.push(...script.redirections)
  built.assignments.push(...script.assignments)
  for (const command of script.commands) {
    const place = command.parent === undefined ? parent : command.parent + base
    built.commands.push({ ...command, via: [...via, ...command.via], parent: place })
  }
}

function finish(script: string, built: Building): ParsedScript {
  const commands = markFolders(markLoss(built.commands))
  const opaque = built.reasons.length > 0
  const classes = unionOf(
    built.classes,
    ...commands.map((one) => one.classes),
    ...built.redirections.map((one) => one.classes),
    built.assignments.flatMap(classesOfAssignment),
    opaque ? [...recoveredClasses(withoutDisguise(script)), 'code_execution', 'unknown'] : [],
  )
  return {
    script,
    commands,
    redirections: built.redirections,
    assignments: built.assignments,
    classes: classes.length > 0 ? classes : ['read_only'],
    ...(opaque ? { opaque: { reason: [...new Set(built.reasons)].join('; '), text: script } } : {}),
  }
}

/** A secret's path in a variable is read by whoever expands it. */
function classesOfAssignment({ value }: Assignment): CommandClass[] {
  return value !== undefined && looksSecret(value.value) ? ['secret_access'] : []
}

/** Whether a script surely changes and discloses nothing: what a `read-only` ceiling admits (CC-01). */
export function isReadOnly(parsed: ParsedScript): boolean {
  return parsed.opaque === undefined && parsed.classes.every((one) => one === 'read_only')
}

export { COMMAND_CLASSES, type CommandClass } from './classes.js'
export type { ParsedScript, SimpleCommand } from './types.js'
