import type { z } from 'zod'

type Issue = z.core.$ZodIssue

/**
 * What is wrong with arguments, in words that a model or a person can act on; one phrase a problem.
 * @param given what was parsed: an issue names only the place, not what stood there.
 */
export function argumentProblems(issues: readonly Issue[], given: unknown): string[] {
  return issues.map((issue) => {
    const place = issue.path.map(String).join('.')
    if (issue.code === 'unrecognized_keys') {
      const names = issue.keys.map((key) => `"${key}"`).join(', ')
      return `unknown argument ${names}${place === '' ? '' : ` in "${place}"`}`
    }
    const subject = place === '' ? 'the whole' : `"${place}"`
    return `${subject} ${problemOf(issue, valueAt(given, issue.path))}`
  })
}

function problemOf(issue: Issue, value: unknown): string {
  if (value === undefined && issue.code !== 'custom') return 'is missing'
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPES[issue.expected] ?? issue.expected}, not ${kindOf(value)}`
    case 'invalid_value':
      return `must be ${issue.values.length === 1 ? '' : 'one of '}${issue.values.map((one) => JSON.stringify(one)).join(', ')}`
    case 'too_small':
      if (issue.minimum === 1 && sizeOf(value) === 0) return 'is empty'
      return bound('at least', issue.minimum, value, issue.inclusive ?? true)
    case 'too_big':
      return bound('at most', issue.maximum, value, issue.inclusive ?? true)
    case 'not_multiple_of':
      return `must be a multiple of ${issue.divisor}`
    case 'invalid_format':
    case 'custom':
      // A schema's own words, where it has any, say more than "does not match a pattern".
      return issue.code === 'custom' || !issue.message.startsWith('Invalid string')
        ? issue.message
        : `does not have the form ${issue.pattern ?? issue.format}`
    default:
      return issue.message
  }
}

const TYPES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'an object',
}

function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'number') return Number.isInteger(value) ? 'a number' : `${value}`
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function bound(words: string, limit: number | bigint, value: unknown, inclusive: boolean): string {
  const size = sizeOf(value)
  if (size === undefined) {
    const than = words === 'at least' ? 'more than' : 'less than'
    return `must be ${inclusive ? words : than} ${limit}, not ${String(value)}`
  }
  const unit = typeof value === 'string' ? 'character' : 'item'
  return `must have ${words} ${limit} ${unit}${limit === 1 ? '' : 's'}, not ${size}`
}

function sizeOf(value: unknown): number | undefined {
  return typeof value === 'string' || Array.isArray(value) ? value.length : undefined
}

function valueAt(given: unknown, path: readonly PropertyKey[]): unknown {
  let value = given
  for (const key of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined
    value = (value as Record<PropertyKey, unknown>)[key]
  }
  return value
}
