import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/lib/log.js'
import { terminalText } from '../../../src/lib/terminal-text.js'
import { createOutputs, type Outputs } from '../../../src/processes/output/outputs.js'
import { pageFrom, type SavedOutput } from '../../../src/processes/output/saved.js'

let dir: string
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kiki-outputs-'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

function outputs(operation = 10_000_000, total = 100_000_000): Outputs {
  return createOutputs({ dir, limits: () => ({ operation, total }), log: silentLog })
}

/** Pages of the text, put together. */
function paged(saved: SavedOutput, page: number): string {
  let text = ''
  for (let at = 0; at < saved.chars; at += page) text += saved.text(at, Math.min(at + page, saved.chars))
  return text
}

function savedOf(written: ReturnType<ReturnType<Outputs['open']>['end']>): SavedOutput {
  if (!('saved' in written)) throw new Error('it was not saved')
  return written.saved
}

const LINES = Buffer.from(
  Array.from({ length: 40_000 }, (_, index) => `line ${index} ${'你'.repeat(index % 7)}\n`).join(''),
)

describe('output of a command', () => {
  it('SH-01 short clean output is text and no file', () => {
    const all = outputs()
    const writer = all.open('op_1')
    writer.push(Buffer.from('hi\n'))
    expect(writer.end()).toEqual({ text: 'hi\n', bytes: 3 })
    expect(all.saved('op_1')).toBeUndefined()
  })

  it('SH-05 OP-14 pages of the text are the whole text, whatever the chunks, also after a restart', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 12 }), (sizes) => {
        const all = outputs()
        const id = `op_${sizes.join('_')}`
        const writer = all.open(id)
        for (let at = 0, turn = 0; at < LINES.length; turn++) {
          const size = sizes[turn % sizes.length] ?? 1
          writer.push(LINES.subarray(at, at + size))
          at += size
        }
        const saved = savedOf(writer.end())
        expect(paged(saved, 70_001) === LINES.toString()).toBe(true)
        expect(saved.raw(0, LINES.length).equals(LINES)).toBe(true)
        expect(paged(outputs().saved(id) as SavedOutput, 99_999) === LINES.toString()).toBe(true)
      }),
      { numRuns: 20 },
    )
  })

  it('SH-05 FC-H09 characters are whole in one line of 50,000, and control sequences stay in the original only', () => {
    const line = Buffer.from(`${'\u4f60'.repeat(50_000)}\x1b[31mred\x1b[0m\x1b]0;title\x07 nul\0 bell\x07 \xff`, 'utf8')
    const bytes = Buffer.concat([line, Buffer.from([0xff, 0xfe]), Buffer.from('\n')])
    const writer = outputs().open('op_1')
    for (let at = 0; at < bytes.length; at += 4099) writer.push(bytes.subarray(at, at + 4099))
    const saved = savedOf(writer.end())
    expect(paged(saved, 1000)).toBe(`${'\u4f60'.repeat(50_000)}red nul\u2400 bell \u00ff\ufffd\ufffd\n`)
    expect(saved.raw(0, bytes.length).equals(bytes)).toBe(true)
  })

  it('SH-01 beyond the cap the middle is dropped, and it says so where it was', () => {
    const writer = outputs(1_000_000).open('op_1')
    for (let round = 0; round < 8; round++) writer.push(LINES)
    const total = 8 * LINES.length
    const saved = savedOf(writer.end())
    const text = paged(saved, 100_000)
    const [head = '', tail = ''] = text.split(/\n\[… \d+ bytes of output were dropped here.*\n/)
    expect(saved.bytes).toBe(total)
    expect(Buffer.byteLength(head) + Buffer.byteLength(tail) + saved.dropped).toBe(total)
    expect(LINES.toString().startsWith(head.slice(0, 300_000))).toBe(true)
    expect(LINES.toString().endsWith(tail.slice(-300_000))).toBe(true)
    expect(total - saved.dropped).toBeLessThan(1_200_000)
    expect(total - saved.dropped).toBeGreaterThan(700_000)
    expect(paged(outputs().saved('op_1') as SavedOutput, 77_777) === text).toBe(true)
  })

  it('SH-01 beyond the cap of the home the oldest output goes, and what has no room says so', () => {
    const all = outputs(LINES.length, 2.5 * LINES.length)
    for (const id of ['op_1', 'op_2', 'op_3']) {
      const writer = all.open(id)
      writer.push(LINES)
      writer.end()
    }
    expect(all.saved('op_1')).toBeUndefined()
    expect(all.saved('op_3')?.dropped).toBe(0)
    const small = createOutputs({
      dir: join(dir, 'small'),
      limits: () => ({ operation: 1e9, total: 100_000 }),
      log: silentLog,
    })
    const writer = small.open('op_9')
    writer.push(LINES)
    const saved = savedOf(writer.end())
    expect(saved.bytes).toBe(LINES.length)
    expect(paged(saved, 100_000)).toMatch(/bytes of output were dropped here/)
  })

  it('SH-03 output is read by cursor while it is written, and by the next host after a death', () => {
    const writer = outputs().open('op_1')
    writer.save()
    let cursor = 0
    let text = ''
    const chunks = [
      Buffer.from('first\nsec'),
      Buffer.from('ond\n\xe4\xbd', 'latin1'),
      Buffer.from('\xa0 and \x1b[3', 'latin1'),
    ]
    for (const chunk of [...chunks, Buffer.from('1mred')]) {
      writer.push(chunk)
      const page = pageFrom(writer, cursor, 1000, false)
      text += page.text
      cursor = page.next
    }
    text += pageFrom(writer, cursor, 1000, true).text
    expect(text).toBe('first\nsecond\n\u4f60 and red')
    // Nobody ended it: the host died.
    expect(paged(outputs().saved('op_1') as SavedOutput, 5)).toBe('first\nsecond\n\u4f60 and red')
    expect(pageFrom(writer, -10, 1000, true).text).toBe('d red')
  })

  it('SH-05 what is shown of bytes never throws, and keeps every printable character', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = terminalText(Buffer.from(bytes))
        expect([...text].filter((one) => one < ' ' && !'\t\n\r'.includes(one))).toEqual([])
      }),
    )
  })
})
