import type { SyntaxNode } from './syntax.js'

/**
 * What a leaf of each kind may hold so that bash reads the same token there. tree-sitter-bash is more lenient
 * than bash: it takes `` ${x:-`id`} `` and a backtick in a here-document for plain text, for example. A leaf
 * that does not fit, a kind that is not listed, and text that belongs to no leaf make the script opaque.
 */
const LEAVES = {
  word: /^(?:[^\s"'`$\\|&;<>()]|\\[\s\S])+$/,
  raw_string: /^'[^']*'$/,
  ansi_c_string: /^\$'(?:[^'\\]|\\[\s\S])*'$/,
  string_content: /^(?:[^"`$\\]|\\[\s\S])+$/,
  number: /^-?(?:0x)?\d+(?:#[\w@]+)?$/,
  variable_name: /^[A-Za-z_]\w*$|^\d+$/,
  special_variable_name: /^[*@?!#$_-]$/,
  comment: /^#[^\n]*$/,
  file_descriptor: /^\d+$/,
  test_operator: /^-[a-zA-Z]+$/,
  regex: /^(?:[^`$"'\\<>;&\n]|\\[^\n]|\$(?=$|\)))*$/,
  extglob_pattern: /^(?:[^\s`$"'\\<>;&()|]|\\[^\n])*$/,
  heredoc_start: /^(?:[A-Za-z_]\w*|'[A-Za-z_]\w*'|"[A-Za-z_]\w*")$/,
  heredoc_content: /^(?:[^`$\\]|\\[^\n]|\$(?![\w({[*@#?$!'"-]))*$/,
  heredoc_end: /^[A-Za-z_]\w*$/,
} as const satisfies Readonly<Record<string, RegExp>>

const KINDS = new Set(
  `program list pipeline command command_name redirected_statement file_redirect heredoc_redirect heredoc_body
  herestring_redirect negated_command compound_statement subshell if_statement elif_clause else_clause
  while_statement for_statement c_style_for_statement do_group case_statement case_item function_definition
  variable_assignment variable_assignments declaration_command unset_command test_command array subscript
  concatenation string expansion simple_expansion command_substitution process_substitution arithmetic_expansion
  brace_expression binary_expression unary_expression postfix_expression ternary_expression
  parenthesized_expression`.split(/\s+/),
)

// Between the tokens of a word nothing may stand; elsewhere blanks and joined lines.
const TIGHT = new Set(['concatenation', 'simple_expansion', 'brace_expression', 'command_name'])
const ON_ONE_LINE = new Set(
  `command declaration_command unset_command file_redirect herestring_redirect redirected_statement negated_command
  variable_assignment variable_assignments unary_expression`.split(/\s+/),
)
const LINE_GAP = /^(?:[ \t]|\\\n)*$/
const GAP = /^(?:[ \t\n]|\\\n)*$/

/** What bash might read differently from the parser, as reasons; empty for a tree that can be trusted. */
export function doubtsAboutTokens(root: SyntaxNode, script: string): string[] {
  const doubts = new Set<string>()
  if (!GAP.test(script.slice(0, root.start)) || !GAP.test(script.slice(root.end)))
    doubts.add('text outside of every command')
  inspect(root, script, doubts)
  return [...doubts]
}

function inspect(node: SyntaxNode, script: string, doubts: Set<string>): void {
  if (!KINDS.has(node.type)) doubts.add(`a construct that Kiki does not read (${node.type})`)
  let at = node.start
  for (const child of node.children) {
    const gap = script.slice(at, child.start)
    if (!allowedGap(node).test(gap)) doubts.add(`text that belongs to no token: ${gap.trim()}`)
    if (gap === '' && at > node.start && SEPARATE.has(node.type) && isWordNode(child) && endsWord(script, at))
      doubts.add('two words without a blank between them')
    if (child.children.length > 0) inspect(child, script, doubts)
    else if (child.start < child.end) addDoubt(doubts, doubtAboutLeaf(child, node, script))
    at = child.end
  }
  if (!allowedGap(node).test(script.slice(at, node.end))) doubts.add('text at the end of a construct')
}

/** The first line of a here-document's text has no leaf of its own. */
function allowedGap(node: SyntaxNode): RegExp {
  if (node.type === 'heredoc_body') return LEAVES.heredoc_content
  if (ON_ONE_LINE.has(node.type)) return LINE_GAP
  return TIGHT.has(node.type) ? /^$/ : GAP
}

const SEPARATE = new Set(['command', 'declaration_command', 'unset_command', 'file_redirect', 'array', 'for_statement'])
const REDIRECTS = new Set(['file_redirect', 'herestring_redirect', 'heredoc_redirect', 'file_descriptor', 'comment'])

function isWordNode(node: SyntaxNode): boolean {
  return node.named && !REDIRECTS.has(node.type)
}

function endsWord(script: string, at: number): boolean {
  return !/[<>&|(\s]/.test(script[at - 1] ?? '')
}

function addDoubt(doubts: Set<string>, doubt: string | undefined): void {
  if (doubt !== undefined) doubts.add(doubt)
}

const NO_COMMENT = new Set([
  'string',
  'expansion',
  'concatenation',
  'arithmetic_expansion',
  'heredoc_body',
  'subscript',
])

function doubtAboutLeaf(node: SyntaxNode, parent: SyntaxNode, script: string): string | undefined {
  if (!node.named) return doubtAboutOperator(node, parent, script)
  // The delimiter says whether a body expands; heredocs.ts looks at both together.
  if (node.type === 'heredoc_body') return undefined
  // A default such as `${x:-a b}` may hold blanks.
  const text = parent.type === 'expansion' ? node.text.replaceAll(' ', '') : node.text
  const allowed = new Map<string, RegExp>(Object.entries(LEAVES)).get(node.type)
  if (allowed === undefined) return KINDS.has(node.type) ? undefined : `a token that Kiki does not read (${node.type})`
  if (!allowed.test(text)) return `a ${node.type.replaceAll('_', ' ')} that bash reads differently`
  if (node.type !== 'comment') return undefined
  const before = script[node.start - 1]
  return NO_COMMENT.has(parent.type) || (before !== undefined && !/[\s;&|()]/.test(before))
    ? 'a # that bash does not take for a comment'
    : undefined
}

function doubtAboutOperator(node: SyntaxNode, parent: SyntaxNode, script: string): string | undefined {
  if (node.text !== node.type && !/^[;&\n]+$/.test(node.text)) return 'an operator that bash reads differently'
  if (node.text === '$`' || node.text === '``') return 'a backtick in an odd place'
  if (node.text === '$[') return 'the old arithmetic $[...]'
  if (node.text !== '$' || parent.type === 'simple_expansion') return undefined
  const next = script[node.end] ?? ''
  const expands = parent.type === 'string' ? /[\w({[*@#?$!-]/ : /[\w({[*@#?$!'"-]/
  return expands.test(next) ? 'a dollar sign that bash expands' : undefined
}

/** The text of a here-document with an unquoted delimiter expands; this says whether it is only plain text. */
export function isPlainHeredoc(text: string): boolean {
  return LEAVES.heredoc_content.test(text)
}
