import { isObject } from '../lib/json.js'

/** Characters of a target in a list. */
const TARGET_CHARS = 80

/** What a call was about, in a few words for a list: its path or pattern, or null where its arguments name nothing of the kind. */
export function targetOf(args: unknown): string | null {
  if (!isObject(args)) return null
  const named = (name: string) => {
    const value = args[name]
    return typeof value === 'string' && value !== '' ? shorten(value, name) : undefined
  }
  const place = named('path')
  const pattern = named('pattern')
  if (pattern !== undefined) return place === undefined || place === '.' ? pattern : `${pattern} in ${place}`
  const from = named('from')
  const to = named('to')
  if (from !== undefined && to !== undefined) return `${from} to ${to}`
  return place ?? named('operation_id') ?? named('since') ?? null
}

/** Of a path the end says most, of a pattern its beginning. */
function shorten(text: string, name: string): string {
  const signs = [...text]
  if (signs.length <= TARGET_CHARS) return text
  if (name === 'pattern') return `${signs.slice(0, TARGET_CHARS - 1).join('')}…`
  return `…${signs.slice(1 - TARGET_CHARS).join('')}`
}
