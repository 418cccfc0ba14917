import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { KikiError } from '../../../src/lib/errors.js'
import { remove } from '../../../src/tools/files/delete.js'
import { edit } from '../../../src/tools/files/edit.js'
import { makeDirectory } from '../../../src/tools/files/make-directory.js'
import { move } from '../../../src/tools/files/move.js'
import { multiEdit } from '../../../src/tools/files/multi-edit.js'
import { undo } from '../../../src/tools/files/undo.js'
import { write } from '../../../src/tools/files/write.js'
import { createSandbox, runTool, type Sandbox } from '../../helpers/tool-context.js'

/** Everything in a folder: bytes, modes, targets of links, and which names are one file. */
function snapshot(root: string): unknown[] {
  const files = new Map<bigint, string>()
  const entries: unknown[] = []
  const visit = (path: string, name: string) => {
    const stat = lstatSync(path, { bigint: true })
    const mode = (stat.mode & 0o7777n).toString(8)
    if (stat.isSymbolicLink()) entries.push([name, 'link', readlinkSync(path)])
    else if (stat.isFile()) {
      const first = files.get(stat.ino) ?? name
      files.set(stat.ino, first)
      entries.push([name, mode, readFileSync(path, 'latin1'), first, stat.nlink])
    } else {
      entries.push([name, mode, 'folder'])
      for (const inner of readdirSync(path).sort()) visit(join(path, inner), `${name}/${inner}`)
    }
  }
  visit(root, '')
  return entries
}

function fill(root: string): void {
  const at = (name: string) => join(root, name)
  for (const dir of ['d', 'd/e', 'x']) mkdirSync(at(dir))
  chmodSync(at('d'), 0o2750)
  chmodSync(at('d/e'), 0o701)
  writeFileSync(at('a'), 'one\r\ntwo\r\n')
  chmodSync(at('a'), 0o755)
  writeFileSync(at('d/b'), Buffer.from([0xff, 0xfe, 0x61, 0, 0x0a, 0]))
  writeFileSync(at('d/e/c'), 'c')
  chmodSync(at('d/e/c'), 0o600)
  writeFileSync(at('x/empty'), '')
  linkSync(at('d/e/c'), at('x/c2'))
  linkSync(at('d/e/c'), at('c3'))
  symlinkSync('d/e/c', at('l'))
  symlinkSync('nowhere', at('d/dangling'))
  symlinkSync('d', at('dl'))
}

const names = [
  'a',
  'd/b',
  'd/e/c',
  'x/empty',
  'x/c2',
  'c3',
  'l',
  'd',
  'd/e',
  'x',
  'dl',
  'd/dangling',
  'new',
  'n/m/o',
  'dl/q',
  'd/e/r',
]
const path = fc.constantFrom(...names)
const word = fc.constantFrom('', 'c', 'one', 'two\n', 'é', 'c\nc')

const TOOLS = { write, edit, multiEdit, move, remove, makeDirectory, undo }

/** A tool's name and arguments, so that a failure can be read. */
type Call = [keyof typeof TOOLS, Record<string, unknown>]

const to =
  (tool: keyof typeof TOOLS) =>
  (args: Record<string, unknown>): Call => [tool, args]

const call: fc.Arbitrary<Call> = fc.oneof(
  fc.record({ path, content: word }).map(to('write')),
  fc.record({ path, old_string: word, new_string: word, replace_all: fc.boolean() }).map(to('edit')),
  fc
    .record({
      path,
      edits: fc.array(fc.record({ old_string: word, new_string: word, replace_all: fc.constant(true) }), {
        minLength: 1,
        maxLength: 2,
      }),
    })
    .map(to('multiEdit')),
  fc.record({ from: path, to: path, overwrite: fc.boolean() }).map(to('move')),
  fc.record({ path, recursive: fc.boolean() }).map(to('remove')),
  fc.record({ path }).map(to('makeDirectory')),
)

/** Runs a call; one that is refused is as good as none. */
async function attempt(sandbox: Sandbox, [tool, args]: Call): Promise<string> {
  const context = sandbox.context()
  try {
    await runTool(TOOLS[tool], context, args)
  } catch (error) {
    if (!(error instanceof KikiError)) throw error
  }
  return context.operationId
}

async function inSandbox(act: (sandbox: Sandbox) => Promise<void>): Promise<void> {
  const sandbox = createSandbox()
  try {
    fill(sandbox.root)
    await act(sandbox)
  } finally {
    sandbox.remove()
  }
}

const runs = { numRuns: Number(process.env.FC_RUNS ?? 40) }

it('FI-14 undo of everything is the identity: bytes, modes, links and hard links; undo of that undo is the identity too', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 12 }), (calls) =>
      inSandbox(async (sandbox) => {
        const before = snapshot(sandbox.root)
        const ids: string[] = []
        for (const one of calls) ids.push(await attempt(sandbox, one))
        const after = snapshot(sandbox.root)
        if (sandbox.context().changes.since().length === 0) return expect(after).toEqual(before)
        const context = sandbox.context()
        await runTool(undo, context, { since: ids[0] })
        expect(snapshot(sandbox.root)).toEqual(before)
        if (context.journal.records().length === 0) return
        await runTool(undo, sandbox.context(), { operation_id: context.operationId })
        expect(snapshot(sandbox.root)).toEqual(after)
      }),
    ),
    runs,
  )
})

it('FI-14 undo step by step, with single undos and redos in between, ends in the same place', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 1, maxLength: 10 }),
      fc.array(fc.boolean(), { maxLength: 10 }),
      (calls, redos) =>
        inSandbox(async (sandbox) => {
          const before = snapshot(sandbox.root)
          const ids: string[] = []
          for (const [index, one] of calls.entries()) {
            const id = await attempt(sandbox, one)
            ids.push(id)
            if (redos[index] === undefined) continue
            const undone = await attempt(sandbox, ['undo', {}])
            if (redos[index]) await attempt(sandbox, ['undo', { operation_id: undone }])
          }
          if (sandbox.context().changes.since().length === 0) return
          await runTool(undo, sandbox.context(), { since: ids[0] })
          expect(withoutLinkCounts(snapshot(sandbox.root))).toEqual(withoutLinkCounts(before))
        }),
    ),
    runs,
  )
})

/** A hard link that was deleted and brought back by calls of their own may have become a file of its own, which undo says. */
function withoutLinkCounts(entries: unknown[]): unknown[] {
  return entries.map((entry) => (Array.isArray(entry) && entry.length === 5 ? entry.slice(0, 3) : entry))
}
