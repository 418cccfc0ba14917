import type { Random } from '../helpers/random.js'

type Json = unknown

/** Written without quotes by {@link toText}: numbers that `JSON.stringify` cannot write. */
const BARE = '@@'

export const HOSTILE_TEXTS: readonly string[] = [
  ...['', ' ', '.', '..', '../outside.txt', '/', '//', '~', '*', '**', '\\', '\0', 'a\0b', '\r\n', '\n', '\u2028'],
  ...['\ud800', '\udc00x', 'x\ud83d', '😀', 'e\u0301', '\u202etxt', '\ufeff', '\ufffd', 'İ', 'ß', '\u001b[2J'],
  ...['__proto__', 'constructor', 'toString', 'null', 'true', 'NaN', '-1', '1e400', '9007199254740993', "' OR 1=1 --"],
  ...[
    '\x24{HOME}',
    '$(id)',
    '`id`',
    '%00',
    '%2e%2e%2f',
    '{}',
    '[]',
    '(',
    '[',
    '(?<x',
    'a'.repeat(300),
    'é'.repeat(5000),
  ],
]

const HOSTILE_VALUES: readonly Json[] = [
  ...[null, true, false, 0, -1, 1, 1.5, 2 ** 31, 2 ** 53, -(2 ** 53), 1e308, 5e-324],
  ...[`${BARE}1e400`, `${BARE}-0`, `${BARE}123456789012345678901234567890`],
  ...[[], {}, [[]], [null], { '': '' }, { toString: 1 }, [1, 'a', null, {}]],
]

export function hostileValue(random: Random): Json {
  if (random.chance(0.4)) return random.pick(HOSTILE_TEXTS)
  if (random.chance(0.1)) return nested(random, 1 + random.below(100))
  return structuredClone(random.pick(HOSTILE_VALUES))
}

/** Lists and objects in each other. */
export function nested(random: Random, levels: number): Json {
  let value: Json = structuredClone(random.pick(HOSTILE_VALUES))
  for (let i = 0; i < levels; i++) value = random.chance(0.5) ? [value] : { a: value }
  return value
}

/** The same value with one to three faults somewhere in it. The given one is not changed. */
export function mutateJson(random: Random, value: Json): Json {
  let mutated = structuredClone(value)
  for (let i = 1 + random.below(3); i > 0; i--) mutated = mutateOnce(random, mutated)
  return mutated
}

function mutateOnce(random: Random, value: Json): Json {
  if (typeof value !== 'object' || value === null || random.chance(0.05)) return mutateLeaf(random, value)
  const holder = value as Record<string, Json>
  const names = Object.keys(holder)
  const name = names[random.below(names.length)]
  if (name === undefined || random.chance(0.1)) return withMember(random, value)
  const inner = holder[name]
  if (typeof inner === 'object' && inner !== null && random.chance(0.7)) {
    holder[name] = mutateOnce(random, inner)
  } else if (random.chance(0.15)) {
    if (Array.isArray(value)) value.splice(Number(name), 1)
    else delete holder[name]
  } else if (random.chance(0.1)) {
    if (Array.isArray(value)) value.push(inner)
    else define(holder, random.pick(HOSTILE_TEXTS), inner)
  } else holder[name] = mutateLeaf(random, inner)
  return value
}

function withMember(random: Random, value: Json): Json {
  if (Array.isArray(value)) return [...value, hostileValue(random)]
  define(value as Record<string, Json>, random.pick(HOSTILE_TEXTS), hostileValue(random))
  return value
}

/** `__proto__` as a member, as JSON.parse makes it. */
function define(holder: Record<string, Json>, name: string, value: Json): void {
  Object.defineProperty(holder, name, { value, enumerable: true, configurable: true, writable: true })
}

function mutateLeaf(random: Random, value: Json): Json {
  if (typeof value === 'string' && random.chance(0.5)) return mutateText(random, value)
  if (typeof value === 'number' && random.chance(0.5)) return value + random.pick([1, -1, 0.5, 2 ** 40, -(2 ** 40)])
  return hostileValue(random)
}

export function mutateText(random: Random, text: string): string {
  const at = random.below(text.length + 1)
  const to = at + random.below(text.length - at + 1)
  switch (random.below(4)) {
    case 0:
      return text.slice(0, at) + random.pick(HOSTILE_TEXTS) + text.slice(at)
    case 1:
      return text.slice(0, at) + text.slice(to)
    case 2:
      return text.slice(0, to) + text.slice(at)
    default:
      return text.slice(0, at) + String.fromCharCode(random.below(0x10000)) + text.slice(at + 1)
  }
}

/** JSON text, with the numbers that only JSON text can hold. */
export function toText(value: Json): string {
  return (JSON.stringify(value) ?? 'undefined').replace(/"@@([-+.\de]+)"/g, '$1')
}

/** The same bytes with one to four of them changed, left out, doubled or added. */
export function mutateBytes(random: Random, bytes: Buffer): Buffer {
  let mutated = Buffer.from(bytes)
  for (let i = 1 + random.below(4); i > 0; i--) {
    const at = random.below(mutated.length + 1)
    const rest = mutated.subarray(at)
    const length = random.below(Math.min(rest.length, 40) + 1)
    const kind = random.below(5)
    if (kind === 0) mutated = Buffer.concat([mutated.subarray(0, at), randomBytes(random, 1 + random.below(8)), rest])
    else if (kind === 1) mutated = Buffer.concat([mutated.subarray(0, at), rest.subarray(length)])
    else if (kind === 2) mutated = Buffer.concat([mutated.subarray(0, at), rest.subarray(0, length), rest])
    else if (kind === 3) mutated = Buffer.from(mutated.subarray(0, at))
    else if (at < mutated.length) mutated[at] = (mutated[at] ?? 0) ^ (1 << random.below(8))
  }
  return mutated
}

export function randomBytes(random: Random, length: number): Buffer {
  return Buffer.from(Array.from({ length }, () => random.below(256)))
}
