import { doubtsAboutArithmetic, doubtsAboutExpansion } from './arithmetic.js'
import { isForRead, refusalOfAssignment } from './assignments.js'
import { doubtAboutHeredoc } from './heredocs.js'
import { redirectionOf } from './redirects.js'
import { descendants, type SyntaxNode } from './syntax.js'
import type { Assignment, Redirection, Word } from './types.js'
import { plainWord, readWord } from './words.js'

/** A command as the syntax tree has it, before wrappers are looked through. */
export interface RawCommand {
  text: string
  words: Word[]
  assignments: Assignment[]
  redirections: Redirection[]
}

/** All that a script's tree holds, and why it may hide more than that. */
export interface Collected {
  commands: RawCommand[]
  /** Of a group, or of no command at all; those of commands are in the commands. */
  redirections: Redirection[]
  assignments: Assignment[]
  reasons: string[]
  /** A function that calls itself: bash code for a fork bomb. */
  forkBomb: boolean
  /** Variables that the script expands, wherever. */
  variables: string[]
}

const WORDS = new Set(
  `word string raw_string ansi_c_string concatenation number simple_expansion expansion command_substitution
  process_substitution arithmetic_expansion brace_expression regex extglob_pattern`.split(/\s+/),
)
const COMMANDS = new Set(['command', 'declaration_command', 'unset_command', 'test_command'])

/** Takes a syntax tree apart. */
export function collect(root: SyntaxNode, script: string): Collected {
  const out: Collected = {
    ...{ commands: [], redirections: [], assignments: [], reasons: [] },
    ...{ forkBomb: false, variables: [] },
  }
  visit(root, script, out)
  const prefixes = out.commands.flatMap(({ words, assignments }) =>
    assignments.filter((one) => !isForRead(words[0]?.text, one)),
  )
  const values = [...out.assignments, ...prefixes]
  for (const one of values) addReason(out, refusalOfAssignment(one))
  out.reasons.push(...doubtsAboutArithmetic(root))
  return out
}

function addReason(out: Collected, reason: string | undefined): void {
  if (reason !== undefined) out.reasons.push(reason)
}

function visit(node: SyntaxNode, script: string, out: Collected): void {
  if (COMMANDS.has(node.type)) visitCommand(node, [], script, out)
  else if (node.type === 'redirected_statement') visitRedirected(node, script, out)
  else if (node.type.endsWith('_redirect')) visitGroupRedirect(node, script, out)
  else {
    noteNode(node, out)
    visitChildren(node, script, out)
  }
}

function noteNode(node: SyntaxNode, out: Collected): void {
  switch (node.type) {
    case 'variable_assignment':
      out.assignments.push(readAssignment(node))
      break
    case 'function_definition':
      out.reasons.push('it defines a function, which can stand for any program')
      out.forkBomb ||= callsItself(node)
      break
    case 'for_statement': {
      const name = node.children.find((child) => child.type === 'variable_name')?.text
      if (name !== undefined) addReason(out, refusalOfAssignment({ name, text: name, value: undefined }))
      break
    }
    case 'expansion':
    case 'simple_expansion':
      out.reasons.push(...doubtsAboutExpansion(node))
      out.variables.push(...node.children.filter((child) => child.type === 'variable_name').map((child) => child.text))
      break
  }
}

function visitChildren(node: SyntaxNode, script: string, out: Collected): void {
  for (const child of node.children) visit(child, script, out)
}

/** The command's own assignments are no statements; what stands inside of them may be. */
function visitCommand(node: SyntaxNode, redirects: readonly SyntaxNode[], script: string, out: Collected): void {
  const command: RawCommand = { text: textOf(node), words: [], assignments: [], redirections: [] }
  if (node.type === 'test_command') {
    command.words = testWords(node, out)
  } else {
    for (const child of node.children) readPart(node, child, command, out)
  }
  for (const redirect of redirects) attach(redirect, script, command, out)
  out.commands.push(command)
  for (const child of [...node.children, ...redirects]) visitWithin(child, script, out)
}

/** Substitutions within a word, an assignment or a redirection that belongs to a command. */
function visitWithin(node: SyntaxNode, script: string, out: Collected): void {
  if (node.type === 'heredoc_redirect') for (const child of node.children) visitWithin(child, script, out)
  else if (node.type === 'variable_assignment' || node.type.endsWith('_redirect')) visitChildren(node, script, out)
  else visit(node, script, out)
}

function readPart(node: SyntaxNode, child: SyntaxNode, command: RawCommand, out: Collected): void {
  if (child.type === 'variable_assignment') {
    const assignment = readAssignment(child)
    command.assignments.push(assignment)
    if (node.type === 'declaration_command') command.words.push(assignmentWord(assignment))
  } else if (child.type === 'file_redirect' || child.type === 'herestring_redirect') addRedirect(child, command, out)
  else if (child.type === 'command_name' || WORDS.has(child.type)) command.words.push(readWord(child))
  else if (child.type === 'subshell') out.reasons.push('a group stands where a word belongs')
  else if (child.text !== '' && child.type !== 'comment') command.words.push(plainWord(child.text))
}

function assignmentWord({ name, text, value }: Assignment): Word {
  const word = value ?? plainWord('')
  const head = text.slice(0, text.indexOf('=') + 1) || `${name}=`
  return { ...word, raw: text, text: head + word.text, value: head + word.value, prefix: head + word.prefix }
}

function readAssignment(node: SyntaxNode): Assignment {
  const [name, , value] = node.children
  const isWord = value !== undefined && WORDS.has(value.type)
  return {
    name: /^\w+/.exec(name?.text ?? '')?.[0] ?? '',
    text: node.text,
    value: isWord ? readWord(value) : undefined,
  }
}

/** The command as written, without its redirections and assignments. */
function textOf(node: SyntaxNode): string {
  const first = node.children.find((child) => child.type !== 'variable_assignment' && !child.type.endsWith('_redirect'))
  const last = node.children.findLast((child) => !child.type.endsWith('_redirect')) ?? node
  return first === undefined ? node.text : node.text.slice(first.start - node.start, last.end - node.start)
}

/** `[ ]` is a command like others, where `<`, `>` and `|` are what they are elsewhere; `[[ ]]` has them itself. */
function testWords(node: SyntaxNode, out: Collected): Word[] {
  const words: Word[] = []
  const flatten = (one: SyntaxNode): void => {
    if (WORDS.has(one.type)) words.push(readWord(one))
    else if (one.children.length === 0) words.push(plainWord(one.text))
    else for (const child of one.children) flatten(child)
  }
  for (const child of node.children) flatten(child)
  const single = words[0]?.text === '['
  if (single && words.some((word) => /^[<>|&()]+$/.test(word.raw))) out.reasons.push('an operator within [ ]')
  if (!single && words.some((_word, at) => comparesUnseen(words, at)))
    out.reasons.push('arithmetic on a value that Kiki cannot see')
  return words
}

/** `[[ x -eq y ]]` evaluates both sides as expressions, which may assign or run code: only numbers do neither. */
function comparesUnseen(words: readonly Word[], at: number): boolean {
  if (!/^-(?:eq|ne|lt|le|gt|ge)$/.test(words[at]?.text ?? '')) return false
  const [before, left] = [words[at - 2]?.raw ?? '', words[at - 1]?.raw ?? '']
  const [right, after] = [words[at + 1]?.raw ?? '', words[at + 2]?.raw ?? '']
  const numbers = /^-?\d+$/.test(left) && /^-?\d+$/.test(right)
  return !(numbers && /^(?:\[\[|\(|!|&&|\|\|)$/.test(before) && /^(?:\]\]|\)|&&|\|\|)$/.test(after))
}

function visitRedirected(node: SyntaxNode, script: string, out: Collected): void {
  const body = node.children.find((child) => !child.type.endsWith('_redirect'))
  const redirects = node.children.filter((child) => child.type.endsWith('_redirect'))
  visitWith(body, redirects, script, out)
}

/** The parser gives the redirection of `a && b > f` to the whole list, bash gives it to `b`. */
function visitWith(body: SyntaxNode | undefined, redirects: SyntaxNode[], script: string, out: Collected): void {
  const last = body?.children.at(-1)
  if (body !== undefined && COMMANDS.has(body.type) && body.type !== 'test_command') {
    visitCommand(body, redirects, script, out)
  } else if (body !== undefined && last !== undefined && /^(?:list|pipeline|negated_command)$/.test(body.type)) {
    for (const child of body.children.slice(0, -1)) visit(child, script, out)
    visitWith(last, redirects, script, out)
  } else {
    if (body !== undefined) visit(body, script, out)
    for (const redirect of redirects) visitGroupRedirect(redirect, script, out)
  }
}

function visitGroupRedirect(node: SyntaxNode, script: string, out: Collected): void {
  const group: RawCommand = { text: '', words: [], assignments: [], redirections: [] }
  attach(node, script, group, out)
  out.redirections.push(...group.redirections)
  if (group.words.length > 0) out.reasons.push('a word stands behind the redirection of a group')
  visitWithin(node, script, out)
}

function attach(node: SyntaxNode, script: string, command: RawCommand, out: Collected): void {
  if (node.type !== 'heredoc_redirect') {
    addRedirect(node, command, out)
    return
  }
  addReason(out, doubtAboutHeredoc(node, script))
  command.redirections.push(redirectionOf(node.text.split('\n')[0] ?? '', '<<', undefined))
  for (const child of node.children) {
    if (child.type === 'file_redirect' || child.type === 'herestring_redirect') addRedirect(child, command, out)
    else if (WORDS.has(child.type)) command.words.push(readWord(child))
  }
}

/** The parser takes words behind a redirection for more targets; in bash they are the command's words. */
function addRedirect(node: SyntaxNode, command: RawCommand, out: Collected): void {
  const operator = node.children.find((child) => !child.named)?.text ?? ''
  const [target, ...rest] = node.children.filter((child) => WORDS.has(child.type))
  const end = target?.end ?? node.end
  const text = node.text.slice(0, end - node.start)
  // Bash expands the word behind `>&` once more, quoted or not.
  if (/^[<>]&$/.test(operator) && target !== undefined && !/^[\w./-]+$/.test(target.text))
    out.reasons.push(`a word behind ${operator} that bash expands twice`)
  command.redirections.push(redirectionOf(text, operator, target === undefined ? undefined : readWord(target)))
  command.words.push(...rest.map(readWord))
}

function callsItself(node: SyntaxNode): boolean {
  const name = node.children.find((child) => child.type === 'word')?.text
  return [...descendants(node)].some((child) => child.type === 'command_name' && child.text === name)
}
