import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { sha256 } from '../../../src/lib/json.js'
import { createRead } from '../../../src/tools/files/read.js'
import { createSandbox, runTool, type Sandbox } from '../../helpers/tool-context.js'

let folder: Sandbox
beforeEach(() => {
  folder = createSandbox()
})
afterEach(() => folder.remove())

const PNG = Buffer.alloc(70, 1).toString('base64')
const BOOK = {
  nbformat: 4,
  nbformat_minor: 5,
  metadata: { language_info: { name: 'python' } },
  cells: [
    {
      cell_type: 'markdown',
      metadata: {},
      source: ['# Title\n', 'words'],
      attachments: { 'a.png': { 'image/png': PNG } },
    },
    {
      cell_type: 'code',
      execution_count: 3,
      metadata: {},
      source: 'print(1)\nplot()\n',
      outputs: [
        { output_type: 'stream', name: 'stdout', text: ['1\n', '2\n'] },
        { output_type: 'display_data', metadata: {}, data: { 'image/png': PNG, 'text/plain': ['<Figure>'] } },
        { output_type: 'execute_result', data: { 'text/html': '<b>x</b>', 'application/json': { a: 1 } } },
        {
          output_type: 'error',
          ename: 'ValueError',
          evalue: 'no',
          traceback: ['\u001b[31mTraceback\u001b[0m\nline 1'],
        },
      ],
    },
    { cell_type: 'raw', metadata: {}, source: '' },
  ],
}

const SHOWN = [
  '[cell 1: markdown]',
  '# Title',
  'words',
  '[attachment of cell 1: a.png, not shown]',
  '',
  '[cell 2: code, python, run as [3]]',
  'print(1)',
  'plot()',
  '[output of cell 2: stdout]',
  '1',
  '2',
  '[output of cell 2: text/plain]',
  '<Figure>',
  '[output of cell 2: image/png, 70 bytes, not shown]',
  '[output of cell 2: text/html, 8 characters, not shown]',
  '[output of cell 2: application/json, 7 characters, not shown]',
  '[output of cell 2: error ValueError: no]',
  'Traceback',
  'line 1',
  '',
  '[cell 3: raw]',
]
const NOTE = '[Notebook, cells: 3. The file itself is JSON, which Grep shows and Edit changes.]'

function write(name: string, text: string) {
  writeFileSync(join(folder.root, name), text)
}
const read = (
  path: string,
  more: Record<string, unknown> = {},
  limits = { inlineText: 24_000, inlineMedia: 1_048_576 },
) => runTool(createRead(), folder.context({ limits }), { path, ...more })
const numbered = (from: number, to: number) => SHOWN.slice(from - 1, to).map((line, at) => `${from + at}\t${line}`)

it('FI-05 a notebook is shown as cells with their text outputs, images named; the facts say so', async () => {
  const text = JSON.stringify(BOOK, null, 1)
  write('a.ipynb', text)
  const shown = await read('a.ipynb')
  expect(shown.text.split('\n')).toEqual([...numbered(1, SHOWN.length), NOTE])
  expect(shown.facts).toEqual({
    ...{ from: 1, to: SHOWN.length, encoding: 'utf-8', eol: 'lf', truncated: false, total_lines: SHOWN.length },
    ...{ sha256: sha256(Buffer.from(text)), notebook: true, cells: 3 },
  })
})

it('FI-05 FI-01 offset, limit and the inline limit count the lines that are shown', async () => {
  write('a.IPYNB', JSON.stringify(BOOK))
  const page = await read('a.IPYNB', { offset: 7, limit: 3 })
  expect(page.text.split('\n')).toEqual([
    ...numbered(7, 9),
    NOTE,
    `[Lines 7 to 9 of ${SHOWN.length}. Next: offset 10.]`,
  ])
  expect(page.facts).toMatchObject({ from: 7, to: 9, next_offset: 10, truncated: true, notebook: true })
  expect((await read('a.IPYNB', { offset: -2 })).text.split('\n').slice(0, 2)).toEqual(numbered(20, 21))
  expect((await read('a.IPYNB', { offset: 99 })).text).toContain('offset 99 is past the end. It has 21 lines.')
  const small = await read('a.IPYNB', {}, { inlineText: 660, inlineMedia: 1_048_576 })
  expect(small.facts).toMatchObject({ from: 1, truncated: true })
  expect(small.facts.next_offset).toBe((small.facts.to as number) + 1)
})

it('FI-05 broken JSON, another format and a wrong kind are shown as the text that they are, with a note', async () => {
  for (const [content, why] of [
    ['{"cells": [', 'its JSON is broken ('],
    ['{"nbformat": 3, "worksheets": []}', 'it is no notebook of format 4 (see "cells")'],
    ['[1]', 'it is no notebook of format 4'],
    [
      '{"nbformat": 4, "cells": [{"cell_type": "code", "source": 7}]}',
      'it is no notebook of format 4 (see "cells.0.source")',
    ],
  ] as const) {
    write('b.ipynb', content)
    const { text, facts } = await read('b.ipynb')
    expect(text).toContain(`1\t${content}\n[Not shown as a notebook: ${why}`)
    expect(facts).toMatchObject({ from: 1, to: 1, total_lines: 1 })
    expect(facts.notebook).toBeUndefined()
  }
})

it('FI-05 FI-02 an empty notebook, a long line and one that is too large', async () => {
  write('empty.ipynb', '{"nbformat": 4, "cells": []}')
  const empty = await read('empty.ipynb')
  expect(empty.text).toContain('[empty.ipynb: nothing to show.]\n[Notebook, cells: 0.')
  const cells = [{ cell_type: 'code', source: 'x'.repeat(3000) }]
  write('long.ipynb', JSON.stringify({ nbformat: 4, cells }))
  const long = await read('long.ipynb')
  expect(long.text).toContain('… [1000 more characters of this line left out]')
  expect(long.facts).toMatchObject({ truncated: true, total_lines: 2 })
  write('huge.ipynb', JSON.stringify({ nbformat: 4, cells, pad: 'y'.repeat(17 * 1024 * 1024) }))
  expect((await read('huge.ipynb', { limit: 1 })).text).toContain(
    '[Not shown as a notebook: it has more than 16777216 bytes.]',
  )
})
