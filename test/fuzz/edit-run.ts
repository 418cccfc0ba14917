import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { createRandom, type Random } from '../helpers/random.js'
import { grant } from '../torture/world.js'
import type { RunOptions } from './bridge-run.js'
import type { FuzzWorld } from './fuzz-world.js'
import { HOSTILE_TEXTS, mutateJson, mutateText, randomBytes } from './mutate.js'

const LANES = 8

interface Edit {
  old_string: string
  new_string: string
  replace_all?: boolean
  expected_count?: number
}

/** GU-66 with the edits of Edit and MultiEdit: a refused one has changed nothing, a plain one did what it says. @returns how many. */
export async function fuzzEdits(fuzz: FuzzWorld, { inputs, seed, say }: RunOptions): Promise<number> {
  const { connection, session } = await grant(fuzz.host, fuzz.world)
  const client = await connectClient(fuzz.world, connection, 'v1', { session })
  let sent = 0
  const lane = async (number: number) => {
    const random = createRandom(seed * LANES + number)
    for (let i = 0; i < Math.ceil(inputs / LANES); i++) {
      await oneEdit(fuzz, client, random, `play/lane-${number}.txt`, `edit-${number}-${i}`)
      if (++sent % 5000 === 0) say(`${sent} edits`)
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)))
  await client.close()
  await fuzz.check(`edits, seed ${seed}`)
  return sent
}

async function oneEdit(fuzz: FuzzWorld, client: TestClient, random: Random, path: string, key: string): Promise<void> {
  const file = join(fuzz.world.workspace, path)
  rmSync(file, { force: true, recursive: true })
  const before = contentOf(random)
  writeFileSync(file, before)
  const edits = Array.from({ length: random.chance(0.5) ? 1 : 1 + random.below(4) }, () =>
    editOf(random, before.toString()),
  )
  const [first] = edits
  const args = edits.length === 1 && first !== undefined ? { path, ...first } : { path, edits }
  const given = (random.chance(0.2) ? mutateJson(random, args) : args) as Record<string, unknown>
  const name = 'edits' in args ? 'MultiEdit' : 'Edit'
  const sent = typeof given === 'object' && given !== null && !Array.isArray(given) ? given : { value: given }
  const result = await client.call(name, { ...sent, path, _kiki: { idempotency_key: key } })
  const fault = judge(result, { before, after: readFileSync(file), edits, plain: given === args })
  if (fault !== undefined)
    fuzz.faults.push(
      `${fault}: ${name} ${JSON.stringify(given).slice(0, 1000)} on ${JSON.stringify(before.toString().slice(0, 500))}`,
    )
}

interface Seen {
  before: Buffer
  after: Buffer
  edits: readonly Edit[]
  /** Whether the edits were sent as they are. */
  plain: boolean
}

function judge(result: CallResult, { before, after, edits, plain }: Seen): string | undefined {
  const code = meta<{ code?: string } | undefined>(result, 'kiki/error')?.code
  if (code === 'internal_error' || /internal_error/.test(textOf(result))) return `a bug: ${textOf(result)}`
  if (result.isError === true)
    return before.equals(after) ? undefined : `refused with ${code}, and yet the file is another`
  const expected = plain ? expectedOf(before, edits) : undefined
  if (expected === undefined || after.toString() === expected) return undefined
  return `the file became ${JSON.stringify(after.toString().slice(0, 500))}`
}

/** What the simplest case must come to: one exact place, and nothing whose form would have to be kept. */
function expectedOf(before: Buffer, [edit, ...more]: readonly Edit[]): string | undefined {
  const text = before.toString()
  if (
    edit === undefined ||
    more.length > 0 ||
    /[\r\ufeff\ufffd\0]/.test(text) ||
    /[\r\p{Surrogate}\ufeff]/u.test(edit.new_string)
  )
    return undefined
  const parts = text.split(edit.old_string)
  return edit.old_string !== '' && parts.length === 2 ? parts.join(edit.new_string) : undefined
}

const PIECES = [
  'one',
  'two',
  ' ',
  '\n',
  '\n',
  '\r\n',
  '\t',
  '“',
  '"',
  'é',
  'e\u0301',
  '😀',
  '\u2028',
  '\u00a0',
  '\ufeff',
  '\0',
  'aa',
  'a',
  '',
]

function contentOf(random: Random): Buffer {
  const kind = random.below(20)
  if (kind === 0) return randomBytes(random, random.below(300))
  const text = Array.from({ length: random.below(40) }, () =>
    random.pick(kind < 14 ? PIECES.slice(0, 5).concat('x', 'yy', '.') : PIECES),
  ).join('')
  if (kind === 1) return Buffer.from(`\ufeff${text}`, 'utf16le')
  if (kind === 2) return Buffer.from(text.repeat(200))
  return Buffer.from(text)
}

function editOf(random: Random, text: string): Edit {
  const at = random.below(text.length + 1)
  const exact = text.slice(at, at + 1 + random.below(12))
  const edit: Edit = {
    old_string: random.chance(0.6)
      ? exact
      : random.chance(0.5)
        ? mutateText(random, exact)
        : random.pick(HOSTILE_TEXTS),
    new_string: random.chance(0.6)
      ? random.pick(PIECES)
      : random.chance(0.5)
        ? mutateText(random, exact)
        : random.pick(HOSTILE_TEXTS),
  }
  if (random.chance(0.4)) edit.replace_all = true
  if (random.chance(0.1)) edit.expected_count = random.below(4)
  return edit
}
