import { descendants, type SyntaxNode } from './syntax.js'

/*
 * Bash evaluates a variable's value in arithmetic as an expression again, and an array index within it may hold
 * `$(command)`. So arithmetic is only followed with numbers, and with variables that can hold nothing else.
 */
const PLAIN = new Set(
  `number variable_name special_variable_name word simple_expansion binary_expression unary_expression
  postfix_expression ternary_expression parenthesized_expression variable_assignment`.split(/\s+/),
)
const READERS = /^(?:read|mapfile|readarray|getopts|printf|wait|let|unset)$/

/** Why arithmetic in the script may run something; empty where it holds numbers only. */
export function doubtsAboutArithmetic(root: SyntaxNode): string[] {
  const doubts: string[] = []
  const used = new Set<string>()
  for (const node of descendants(root)) {
    if (node.type === 'subscript' && !/\[(?:[@*]|-?\d+)\]$/.test(node.text))
      doubts.push('an array index that runs code')
    if (isArrayAssignment(node)) doubts.push('an array assignment, which evaluates its indexes')
    if (!isArithmetic(node)) continue
    for (const part of arithmeticParts(node)) {
      if (part.named && !PLAIN.has(part.type)) doubts.push(`arithmetic with a ${part.type.replaceAll('_', ' ')}`)
      if (part.type === 'variable_name' || part.type === 'word') used.add(part.text)
    }
  }
  if (used.size === 0) return doubts
  const numeric = numericNames(root)
  for (const name of used) {
    if (!/^\d+$/.test(name) && !numeric.has(name)) doubts.push(`arithmetic on ${name}, whose value Kiki cannot see`)
  }
  return doubts
}

/** `a=([b[$(x)]]=1)` runs what its index holds, and `PAGER=(x)` sets a variable that has no value of its own. */
function isArrayAssignment(node: SyntaxNode): boolean {
  return node.type === 'array' || (node.type === 'variable_assignment' && node.children[0]?.type === 'subscript')
}

function isArithmetic(node: SyntaxNode): boolean {
  if (node.type === 'arithmetic_expansion' || node.type === 'c_style_for_statement') return true
  return node.type === 'compound_statement' && node.children[0]?.text === '(('
}

/** The body of a loop is no arithmetic. */
function arithmeticParts(node: SyntaxNode): SyntaxNode[] {
  return node.children
    .filter((child) => child.type !== 'do_group' && child.type !== 'compound_statement')
    .flatMap((child) => [child, ...descendants(child)])
}

/** Variables to which the script only ever gives numbers, and nothing else gives a value. */
function numericNames(root: SyntaxNode): Set<string> {
  const numeric = new Set<string>()
  const other = new Set<string>()
  for (const node of descendants(root)) {
    if (node.type === 'variable_assignment') {
      const [name, operator, value] = node.children
      const isNumber = value?.type === 'number' || value?.type === 'arithmetic_expansion'
      const inArithmetic = value !== undefined && /_expression$/.test(value.type)
      const kept = (isNumber || inArithmetic) && operator?.text === '='
      ;(kept ? numeric : other).add(name?.text ?? '')
    } else if (node.type === 'for_statement') {
      const values = node.children.filter((child) => child.named && !/^(?:variable_name|do_group)$/.test(child.type))
      const kept =
        values.length > 0 && values.every((value) => value.type === 'number' || value.type === 'brace_expression')
      ;(kept ? numeric : other).add(node.children.find((child) => child.type === 'variable_name')?.text ?? '')
    } else if (
      node.type === 'command' &&
      READERS.test(node.children.find((child) => child.type === 'command_name')?.text ?? '')
    ) {
      for (const word of descendants(node)) other.add(word.text.replace(/^['"]|['"]$/g, ''))
    }
  }
  return new Set([...numeric].filter((name) => !other.has(name)))
}

/** Expansions that evaluate a value once more, or assign: `${v@P}`, `${!v}`, `${v:=x}`, `${v:offset}`. */
export function doubtsAboutExpansion(node: SyntaxNode): string[] {
  if (node.type !== 'expansion') return []
  const text = node.text
  if (/^\$\{[^}]*@[A-Za-z]\}?/.test(text) && !/^\$\{\w+(?:\[[@*]\])?@[QULu]\}$/.test(text) && hasOperator(node, '@'))
    return ['an expansion that evaluates its value (v@P)']
  if (/^\$\{\s*!/.test(text)) return ['an indirect expansion (!v)']
  if (hasOperator(node, ':=') || hasOperator(node, '=')) return ['an expansion that assigns (v:=x)']
  if (hasOperator(node, ':') && !/^\$\{\w+:\s*-?\d+(?::-?\d+)?\}$/.test(text))
    return ['an offset that is evaluated (v:n)']
  return []
}

function hasOperator(node: SyntaxNode, operator: string): boolean {
  return node.children.some((child) => !child.named && child.text === operator)
}
