import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { list } from '../../../src/tools/files/list.js'
import { createSandbox, refusal, runTool, type Sandbox } from '../../helpers/tool-context.js'

let sandbox: Sandbox
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

const at = (...names: string[]) => join(sandbox.root, ...names)
const run = (args: Record<string, unknown> = {}, limits = { inlineText: 24_000, inlineMedia: 1_048_576 }) =>
  runTool(list, sandbox.context({ limits }), args)

it('FI-13 List shows names, types, sizes and times, hidden ones too, and links without following them', async () => {
  mkdirSync(at('sub', 'deep'), { recursive: true })
  writeFileSync(at('sub', 'inner'), '')
  writeFileSync(at('.hidden'), '12345')
  symlinkSync('/etc', at('link'))
  expect(spawnSync('mkfifo', [at('pipe')]).status).toBe(0)
  utimesSync(at('.hidden'), 0, 1_000_000_000)
  const { text, facts } = await run()
  const lines = text.split('\n')
  expect(lines[0]).toBe('file               5  2001-09-09T01:46:40Z  .hidden')
  expect(lines[1]).toMatch(/^link .* link -> \/etc$/)
  expect(lines[2]).toMatch(/^fifo .* pipe$/)
  expect(lines[3]).toMatch(/^directory .* sub\/$/)
  expect(lines[4]).toBe('(4 entries; end of the list.)')
  expect(facts).toEqual({ path: '.', total: 4, shown: 4 })
  const names = (await run({ depth: 2 })).text.split('\n').map((line) => line.split('Z  ')[1])
  expect(names.slice(3, 6)).toEqual(['sub/', 'sub/deep/', 'sub/inner'])
})

it('FI-13 pages join to the whole list, by limit and by the inline limit', async () => {
  for (let index = 0; index < 50; index += 1) writeFileSync(at(`file-${String(index).padStart(2, '0')}`), '')
  for (const [limit, inlineText] of [
    [7, 24_000],
    [500, 1_400],
  ] as const) {
    const names: string[] = []
    for (let offset: unknown = 0; offset !== undefined; ) {
      const { text, facts } = await run({ limit, offset }, { inlineText, inlineMedia: 1_048_576 })
      expect(text.length).toBeLessThanOrEqual(inlineText)
      names.push(
        ...text
          .split('\n')
          .slice(0, -1)
          .map((line) => line.split('Z  ')[1] ?? ''),
      )
      if (facts.next !== undefined) expect(text).toContain(`next: offset ${facts.next}`)
      offset = facts.next
    }
    expect(names).toEqual(readdirSync(sandbox.root).sort())
  }
  expect((await run({ offset: 100 })).text).toContain('past the end')
})

it('FI-13 names that are not UTF-8 or would break the line are escaped', async () => {
  writeFileSync(Buffer.concat([Buffer.from(`${sandbox.root}/caf`), Buffer.from([0xe9])]), '')
  writeFileSync(at('two\nlines'), '')
  writeFileSync(at('right\u202eto left'), '')
  writeFileSync(at('größe 😀'), '')
  const { text } = await run()
  expect(text).toContain('"caf\\xe9"')
  expect(text).toContain('"two\\nlines"')
  expect(text).toContain('"right\\u{202e}to left"')
  expect(text).toContain('größe 😀')
  expect(text.split('\n')).toHaveLength(5)
})

it('FI-13 an empty folder says so; a file and a missing folder are refused', async () => {
  mkdirSync(at('empty'))
  writeFileSync(at('f'), '')
  expect((await run({ path: 'empty' })).text).toBe('(empty is empty: 0 entries.)')
  expect((await refusal(() => run({ path: 'f' }))).code).toBe('invalid_arguments')
  expect((await refusal(() => run({ path: 'emtpy' }))).data).toMatchObject({ near: ['empty'] })
})

it('FI-13 PA-02 a link out is not listed, and a large tree is capped and says so', { timeout: 60_000 }, async () => {
  symlinkSync(sandbox.out, at('out'))
  expect((await refusal(() => run({ path: 'out' }))).code).toBe('path_denied')
  for (let folder = 0; folder < 21; folder += 1) {
    mkdirSync(at(`d${folder}`))
    for (let index = 0; index < 1_000; index += 1) writeFileSync(at(`d${folder}`, `${index}`), '')
  }
  const { text, facts } = await run({ depth: 2, limit: 10 })
  expect(facts).toMatchObject({ total: 20_000, capped: true, shown: 10, next: 10 })
  expect(text).toContain('at least 20000')
})
