import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createTwoFilesPatch } from 'diff'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { createRandom, type Random } from '../helpers/random.js'
import { grant } from '../torture/world.js'
import type { RunOptions } from './bridge-run.js'
import type { FuzzWorld } from './fuzz-world.js'
import { HOSTILE_TEXTS, mutateText } from './mutate.js'

const LANES = 8

/** Files of one lane by their name in it. */
type Files = Map<string, string>

interface Patch {
  text: string
  /** What must be there afterwards; undefined where nothing is known but that a refusal changes nothing. */
  expected?: Files
}

/**
 * GU-66 with patches: random ones, good ones, and good ones with faults put into them. A refused one has changed nothing, a good one
 * did what it says, and no other file is touched (which the world looks at in the end). @returns how many.
 */
export async function fuzzPatches(fuzz: FuzzWorld, { inputs, seed, say }: RunOptions): Promise<number> {
  const { connection, session } = await grant(fuzz.host, fuzz.world)
  const client = await connectClient(fuzz.world, connection, 'v1', { session })
  let sent = 0
  const lane = async (number: number) => {
    const random = createRandom(seed * LANES + number + 7)
    for (let i = 0; i < Math.ceil(inputs / LANES); i++) {
      await onePatch(fuzz, client, random, `play/patch-${number}`, `patch-${number}-${i}`)
      if (++sent % 5000 === 0) say(`${sent} patches`)
    }
  }
  await Promise.all(Array.from({ length: LANES }, (_, number) => lane(number)))
  await client.close()
  await fuzz.check(`patches, seed ${seed}`)
  return sent
}

async function onePatch(fuzz: FuzzWorld, client: TestClient, random: Random, lane: string, key: string): Promise<void> {
  const root = join(fuzz.world.workspace, lane)
  rmSync(root, { recursive: true, force: true })
  const files: Files = new Map(['a.txt', 'b c.txt', 'sub/d'].map((name) => [name, contentOf(random)]))
  for (const [name, text] of files) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
  symlinkSync('a.txt', join(root, 'link'))
  const before = treeOf(root)
  const patch = patchOf(random, files, lane)
  const result = await client.call('ApplyPatch', { patch: patch.text, _kiki: { idempotency_key: key } })
  const fault = judge(result, patch, { before, after: treeOf(root) })
  if (fault !== undefined) fuzz.faults.push(`${fault}: ${JSON.stringify(patch.text).slice(0, 1500)}`)
}

function judge(result: CallResult, { expected }: Patch, tree: { before: Files; after: Files }): string | undefined {
  const code = meta<{ code?: string } | undefined>(result, 'kiki/error')?.code
  if (code === 'internal_error' || /internal_error/.test(textOf(result))) return `a bug: ${textOf(result)}`
  if (result.isError === true) {
    if (expected !== undefined) return `a good patch was refused: ${textOf(result)}`
    return isSame(tree.before, tree.after) ? undefined : `refused with ${code}, and yet files are others`
  }
  if (expected === undefined || isSame(tree.after, new Map([...expected, ['link', '-> a.txt']]))) return undefined
  return `the files became ${JSON.stringify([...tree.after]).slice(0, 800)}`
}

function isSame(one: Files, other: Files): boolean {
  return one.size === other.size && [...one].every(([name, text]) => other.get(name) === text)
}

function treeOf(root: string): Files {
  if (lstatSync(root, { throwIfNoEntry: false }) === undefined) return new Map()
  const entries = readdirSync(root, { recursive: true, withFileTypes: true }).filter((one) => !one.isDirectory())
  return new Map(
    entries.map((one) => {
      const path = join(one.parentPath, one.name)
      return [
        path.slice(root.length + 1),
        one.isSymbolicLink() ? `-> ${readlinkSync(path)}` : readFileSync(path, 'utf8'),
      ]
    }),
  )
}

const PIECES = ['one', 'two', '', '  x', '\ty', 'é', '“q”', 'x ', '-- a', '++ b', '@@', '*** End Patch', '\\ No', '}']

function contentOf(random: Random): string {
  const eol = random.chance(0.2) ? '\r\n' : '\n'
  const lines = Array.from({ length: random.below(25) }, () => random.pick(PIECES))
  return lines.length === 0 ? '' : lines.join(eol) + (random.chance(0.8) ? eol : '')
}

function patchOf(random: Random, files: Files, lane: string): Patch {
  const kind = random.below(10)
  if (kind === 0) return { text: randomPatch(random, lane) }
  const good = random.chance(0.7) ? unifiedPatch(random, files, lane) : envelopePatch(random, files, lane)
  if (kind < 4) return good
  let text = good.text
  for (let i = 1 + random.below(3); i > 0; i--)
    text = random.chance(0.5) ? mutateText(random, text) : mutateLines(random, text)
  return { text: text === '' ? ' ' : text }
}

function changed(random: Random, text: string): string {
  const lines = text.split('\n')
  const at = random.below(lines.length + 1)
  lines.splice(at, random.below(3), ...Array.from({ length: random.below(3) }, () => random.pick(PIECES)))
  return lines.join('\n')
}

function unifiedPatch(random: Random, files: Files, lane: string): Patch {
  const expected = new Map(files)
  let text = ''
  for (const [name, before] of files) {
    const after = changed(random, before)
    if (after === before || random.chance(0.3)) continue
    const path = `${lane}/${name}`
    // The library names no file without lines as one that is there.
    if (before === '' || after === '') continue
    text += createTwoFilesPatch(`a/${path}`, `b/${path}`, before, after).replace(/^=+\n/, '')
    expected.set(name, after)
  }
  if (random.chance(0.3)) {
    text += `diff --git a/${lane}/sub/d b/${lane}/moved\nsimilarity index 100%\nrename from ${lane}/sub/d\nrename to ${lane}/moved\n`
    expected.set('moved', expected.get('sub/d') ?? '')
    expected.delete('sub/d')
  }
  return text === '' ? { text: '--- a/x\n' } : { text, expected }
}

function envelopePatch(random: Random, files: Files, lane: string): Patch {
  const expected = new Map(files)
  const parts: string[] = []
  for (const [name, before] of files) {
    const kind = random.below(4)
    if (kind === 0) {
      parts.push(`*** Delete File: ${lane}/${name}`)
      expected.delete(name)
    } else if (kind === 1 && /^[^\r]+\n$/.test(before)) {
      const lines = before.split('\n').slice(0, -1)
      if (lines.every((line) => line.trim() === '')) continue
      parts.push(`*** Update File: ${lane}/${name}`, '@@', ...lines.map((line) => ` ${line}`), '+added')
      expected.set(name, `${before}added\n`)
    }
  }
  parts.push(`*** Add File: ${lane}/new/${random.below(9)}`, '+fresh')
  expected.set(parts.at(-2)?.slice(`*** Add File: ${lane}/`.length) ?? '', 'fresh\n')
  return { text: ['*** Begin Patch', ...parts, '*** End Patch'].join('\n'), expected }
}

/** Whole lines left out, doubled, moved or put in. */
function mutateLines(random: Random, text: string): string {
  const lines = text.split('\n')
  const [from, to] = [random.below(lines.length), random.below(lines.length)]
  const [line = ''] = lines.slice(from)
  if (random.chance(0.4)) lines.splice(from, 1)
  if (random.chance(0.6)) lines.splice(to, 0, random.chance(0.6) ? line : random.pick(LINES))
  return lines.join('\n')
}

const LINES = [
  ...[
    '--- a/x',
    '+++ b/x',
    '--- /dev/null',
    '+++ /dev/null',
    '@@ -1,3 +1,3 @@',
    '@@ -0,0 +1 @@',
    '@@',
    '@@ -999999999,9 +1 @@',
  ],
  ...[
    'diff --git a/x b/x',
    'rename from x',
    'rename to ../../outside.txt',
    'new file mode 120000',
    'old mode 100644',
    'new mode 100755',
  ],
  ...[
    '*** Begin Patch',
    '*** End Patch',
    '*** Update File: ../../outside.txt',
    '*** Delete File: ../keep',
    '*** End of File',
  ],
  ...[
    '*** Add File: /etc/x',
    '*** Move to: ..',
    '\\ No newline at end of file',
    'GIT binary patch',
    ' one',
    '-two',
    '+three',
    '',
  ],
]

function randomPatch(random: Random, lane: string): string {
  const pick = () => (random.chance(0.2) ? random.pick(HOSTILE_TEXTS) : random.pick(LINES))
  const lines = Array.from({ length: 1 + random.below(30) }, pick)
  return `${lines.join('\n').replaceAll('x', `${lane}/a.txt`)}\n`
}
