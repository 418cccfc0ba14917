import type { Random } from '../helpers/random.js'
import { hostileValue, mutateBytes, mutateJson, randomBytes, toText } from './mutate.js'
import { fittingValue, type Schema, type Words } from './schema-values.js'

/** The `_meta` that makes a request one of the 2026 era. */
export const MODERN = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'fuzz', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export interface ToolShape {
  name: string
  inputSchema: Schema
}

/** Kiki's own paths and ids, among which a careless or hostile client chooses. Nothing here names a file that is looked at later. */
export function wordsOf({ session, outside }: { session: string; outside: string }): Words {
  const paths = ['play/a.txt', 'play/b.txt', 'play/sub/c.txt', 'play/new.txt', 'play', 'play/sub', 'play/none', outside]
  return {
    ...Object.fromEntries(['path', 'from', 'to', 'source', 'destination', 'new_path'].map((name) => [name, paths])),
    session_ref: [...Array.from({ length: 8 }, () => session), 'ext_none', session.slice(0, -1)],
    idempotency_key: Array.from({ length: 500 }, (_, i) => `key-${i}`),
    operation_id: ['op_none', 'op_00000000000000000000000000'],
    old_string: ['one', 'two\n', 'three', 'o'],
    new_string: ['one', 'two\r\n', 'drei', ''],
    pattern: ['*', '**/*.txt', 'o', 'on(e|o)+', '\\bthree$'],
    content: ['one\ntwo\nthree\n', 'x', ''],
    text: ['a saved text'],
  }
}

const PROTOCOL: readonly [method: string, params: unknown][] = [
  ['ping', undefined],
  ['ping', {}],
  ['tools/list', {}],
  ['tools/list', { cursor: '' }],
  ['server/discover', {}],
  ['initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'fuzz', version: '1' } }],
  ['subscriptions/listen', { notifications: { toolsListChanged: true } }],
  ['logging/setLevel', { level: 'debug' }],
  ['resources/list', {}],
  ['resources/read', { uri: 'file:///etc/passwd' }],
  ['prompts/get', { name: 'x' }],
  ['completion/complete', { ref: { type: 'ref/prompt', name: 'x' }, argument: { name: 'a', value: 'b' } }],
  ['tasks/get', { taskId: 'x' }],
  ['no/such/method', { a: 1 }],
]

const NOTIFICATIONS: readonly [method: string, params: unknown][] = [
  ['notifications/initialized', undefined],
  ['notifications/cancelled', { requestId: 'nothing', reason: 'x' }],
  ['notifications/progress', { progressToken: 1, progress: 1 }],
  ['notifications/roots/list_changed', {}],
  ['notifications/none', {}],
  ['tools/call', { name: 'Read', arguments: { path: 'play/a.txt' } }],
]

export interface MessageSource {
  /** Whose opening the stream had: a request of the other era is the exception. */
  era: '2025' | '2026'
  tools: readonly ToolShape[]
  words: Words
}

/** One line of a client, without its newline; `id` is used where the message has one. */
export function messageOf(random: Random, source: MessageSource, id: number): Buffer {
  const kind = random.below(100)
  if (kind < 4) return randomBytes(random, random.below(200))
  if (kind < 8) return Buffer.from(toText(answerToNothing(random)))
  if (kind < 10) return Buffer.from(toText(batchOf(random, source, id)))
  const request = oneOf(random, source, id)
  if (kind < 25) return mutateBytes(random, Buffer.from(toText(request)))
  if (kind < 28) return Buffer.from(toText({ ...request, params: BIG }).replace(`"${BIG}"`, () => big(random)))
  if (kind < 60) return Buffer.from(toText(mutateJson(random, request)))
  return Buffer.from(toText(request))
}

function oneOf(random: Random, source: MessageSource, number: number): Record<string, unknown> {
  const { tools, words } = source
  const id = idOf(random, number)
  const head = { jsonrpc: '2.0', id }
  if (random.chance(0.1)) return withParams(random, source, { jsonrpc: '2.0' }, random.pick(NOTIFICATIONS))
  if (random.chance(0.25)) return withParams(random, source, head, random.pick(PROTOCOL))
  const { name, inputSchema } = random.pick(tools)
  const args = fittingValue(random, inputSchema, words)
  const mutated = random.chance(0.4) ? mutateJson(random, args) : args
  return withParams(random, source, head, ['tools/call', { name, arguments: mutated }])
}

function withParams(
  random: Random,
  { era }: MessageSource,
  head: object,
  [method, params]: readonly [string, unknown],
): Record<string, unknown> {
  if (params === undefined) return { ...head, method }
  const own = random.chance(0.9) ? era : era === '2025' ? '2026' : '2025'
  const progress = random.chance(0.1) ? { progressToken: hostileValue(random) } : {}
  const meta = { ...(own === '2026' ? MODERN : {}), ...progress }
  return {
    ...head,
    method,
    params: { ...(params as object), ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }) },
  }
}

/** Mostly a number of its own; else a text, also with half a character. */
function idOf(random: Random, number: number): string | number {
  if (random.chance(0.6)) return number
  return `${random.pick(['id', '\ud800', '😀', '\0', '"\\', '__proto__'])}${number}`
}

function answerToNothing(random: Random): unknown {
  const id = random.pick([0, 1, 'x', null, 1.5])
  if (random.chance(0.5)) return { jsonrpc: '2.0', id, result: hostileValue(random) }
  return { jsonrpc: '2.0', id, error: random.chance(0.5) ? { code: 1, message: 'x' } : hostileValue(random) }
}

function batchOf(random: Random, source: MessageSource, id: number): unknown {
  return Array.from({ length: random.below(4) }, () => oneOf(random, source, id))
}

const BIG = 'something large'

/** JSON text that is large or deep, some of it beyond what is parsed at once. */
function big(random: Random): string {
  const length = 2 ** random.below(random.chance(0.05) ? 21 : 16)
  const inner = random.pick(['1', '{"a":', '['])
  if (inner !== '1')
    return `{"name":"Read","arguments":${inner.repeat(length)}1${(inner === '[' ? ']' : '}').repeat(length)}}`
  if (random.chance(0.5))
    return toText({ name: 'Write', arguments: { path: 'play/big.txt', content: 'ü'.repeat(length) } })
  return toText({ list: Array.from({ length: Math.min(length, 10_000) }, () => hostileValue(random)) })
}
