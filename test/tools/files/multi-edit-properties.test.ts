import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { KikiError } from '../../../src/lib/errors.js'
import { edit as editTool } from '../../../src/tools/files/edit.js'
import { multiEdit } from '../../../src/tools/files/multi-edit.js'
import { undo } from '../../../src/tools/files/undo.js'
import { encode } from '../../../src/workspace/encoding.js'
import { createSandbox, runTool, type Sandbox } from '../../helpers/tool-context.js'

let sandbox: Sandbox
beforeAll(() => {
  sandbox = createSandbox()
})
afterAll(() => sandbox.remove())

interface OneEdit {
  old_string: string
  new_string: string
  replace_all?: boolean
  expected_count?: number
}

/** What a call came to: its error, or undefined. */
async function attempt(run: () => Promise<unknown>): Promise<KikiError | undefined> {
  try {
    await run()
    return undefined
  } catch (error) {
    if (error instanceof KikiError) return error
    throw error
  }
}

/** Every place at which a text stands, overlapping ones too. */
function placesOf(text: string, wanted: string): number {
  let count = 0
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) count++
  return count
}

/** What one edit should do to plain text, said as simply as can be. */
function simply(text: string, edit: OneEdit): string | KikiError['code'][] {
  const { old_string: old, new_string: fresh, replace_all: all, expected_count: expected } = edit
  if (old === fresh || old === '') return ['invalid_arguments']
  const count = all === true ? text.split(old).length - 1 : placesOf(text, old)
  if (count === 0) return ['not_found']
  if ((expected !== undefined && expected !== count) || (all !== true && count > 1)) return ['conflict']
  return text.split(old).join(fresh)
}

/** Texts in which nothing is overlooked (no spaces, quotes or carriage returns), so that a plain search is the whole truth. */
const plain = fc.array(fc.constantFrom('a', 'b', 'ab', '\n', 'é', 'e\u0301', '日', '😀', '$&', "$'", '\\n', '.*'), {
  minLength: 1,
  maxLength: 30,
})
const fields = fc.record(
  { replace_all: fc.boolean(), expected_count: fc.integer({ min: 1, max: 3 }) },
  { requiredKeys: [] },
)
/** An edit whose old text is a piece of the first text, of some edit's new text, or anything. */
const edits = (units: readonly string[]): fc.Arbitrary<OneEdit> =>
  fc
    .tuple(
      fc.oneof(
        {
          weight: 6,
          arbitrary: fc
            .tuple(fc.nat(units.length - 1), fc.integer({ min: 1, max: 3 }))
            .map(([at, n]) => units.slice(at, at + n).join('')),
        },
        { weight: 1, arbitrary: fc.constantFrom('X', 'Y', 'é', 'nowhere', '') },
      ),
      fc.constantFrom('X', 'Y', 'XX', '', 'a', '\n', '$&$1', '日'),
      fields,
    )
    .map(([old_string, new_string, more]) => ({ old_string, new_string, ...more }))
const plainCase = plain.chain((units) =>
  fc.tuple(fc.constant(units.join('')), fc.array(edits(units), { minLength: 1, maxLength: 6 })),
)

it('FI-09 FI-07 FI-14 edits apply in order, to exactly what they match, all or none; an undo brings every byte back', async () => {
  const seen = new Set<string>()
  await fc.assert(
    fc.asyncProperty(plainCase, async ([text, list]) => {
      fc.pre(text !== '')
      const file = join(sandbox.root, 'plain')
      writeFileSync(file, text)
      let wanted = text
      let refused: { at: number; codes: string[] } | undefined
      for (const [at, one] of list.entries()) {
        const next = simply(wanted, one)
        if (typeof next === 'string') wanted = next
        else {
          refused = { at, codes: next }
          break
        }
      }
      const context = sandbox.context()
      const error = await attempt(() => runTool(multiEdit, context, { path: 'plain', edits: list }))
      if (refused !== undefined) {
        expect(refused.codes).toContain(error?.code)
        expect(error?.message).toContain(`edits[${refused.at}]`)
        expect(error?.data?.edit).toBe(refused.at)
      } else if (wanted === text) expect(error?.code).toBe('invalid_arguments')
      else expect(error).toBeUndefined()
      const changed = error === undefined
      expect(readFileSync(file, 'utf8')).toBe(changed ? wanted : text)
      expect(context.journal.records()).toHaveLength(changed ? 1 : 0)
      seen.add(error?.code ?? 'done')
      if (!changed) return
      await runTool(undo, sandbox.context(), { operation_id: context.operationId })
      expect(readFileSync(file, 'utf8')).toBe(text)
    }),
    { numRuns: 300 },
  )
  expect([...seen].sort()).toEqual(['conflict', 'done', 'invalid_arguments', 'not_found'])
})

/** Anything that a text file may hold, in every encoding that is edited. */
const wild = fc.record({
  as: fc.constantFrom('utf-8' as const, 'utf-8-bom' as const, 'utf-16le' as const, 'utf-16be' as const),
  units: fc.array(fc.constantFrom('a', 'b', ' ', '\t', '\n', '\r\n', '\r', '“', '"', '’', 'é', '\u0a0d', '日', '😀'), {
    minLength: 1,
    maxLength: 30,
  }),
})
const MARK = { 'utf-8': [], 'utf-8-bom': [0xef, 0xbb, 0xbf], 'utf-16le': [0xff, 0xfe], 'utf-16be': [0xfe, 0xff] }
const wildCase = wild.chain(({ as, units }) =>
  fc.tuple(fc.constant({ as, units }), fc.array(edits(units), { minLength: 1, maxLength: 5 })),
)

it('FI-09 FI-07 FI-08 FI-14 is the same as its edits one by one, and a dry run tells the same; an undo brings every byte back', async () => {
  let done = 0
  await fc.assert(
    fc.asyncProperty(wildCase, async ([{ as, units }, list]) => {
      const bytes = Buffer.concat([Buffer.from(MARK[as]), encode(units.join(''), as)])
      const [together, oneByOne] = [join(sandbox.root, 'together'), join(sandbox.root, 'one-by-one')]
      writeFileSync(together, bytes)
      writeFileSync(oneByOne, bytes)
      let first: KikiError | undefined
      for (const one of list) {
        first ??= await attempt(() => runTool(editTool, sandbox.context(), { path: 'one-by-one', ...one }))
      }
      const dry = await attempt(() =>
        runTool(multiEdit, sandbox.context(), { path: 'together', edits: list, dry_run: true }),
      )
      expect(readFileSync(together)).toEqual(bytes)
      const context = sandbox.context()
      const error = await attempt(() => runTool(multiEdit, context, { path: 'together', edits: list }))
      expect(dry?.code).toBe(error?.code)
      if (error !== undefined) {
        expect(readFileSync(together)).toEqual(bytes)
        const byThemselves = readFileSync(oneByOne).equals(bytes)
        expect(first?.code ?? (byThemselves ? 'invalid_arguments' : 'done')).toBe(error.code)
        return
      }
      done++
      expect(first).toBeUndefined()
      expect(readFileSync(together)).toEqual(readFileSync(oneByOne))
      await runTool(undo, sandbox.context(), { operation_id: context.operationId })
      expect(readFileSync(together)).toEqual(bytes)
    }),
    { numRuns: 300 },
  )
  expect(done).toBeGreaterThan(20)
})
