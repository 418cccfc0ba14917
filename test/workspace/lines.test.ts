import {
  closeSync,
  existsSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, it } from 'vitest'
import { sha256 } from '../../src/lib/json.js'
import { type Encoding, encode } from '../../src/workspace/encoding.js'
import { createLineIndexes, type LineIndexes, WHOLE_FILE_BYTES } from '../../src/workspace/line-index.js'
import { MAX_LINE_CHARS, type Page, type PageRequest, readPage } from '../../src/workspace/lines.js'

const dir = mkdtempSync(join(tmpdir(), 'kiki-lines-'))
afterAll(() => rmSync(dir, { recursive: true }))

type TextPage = Extract<Page, { kind: 'text' }>

async function read(path: string, request: Partial<PageRequest> = {}, indexes?: LineIndexes, signal?: AbortSignal) {
  const fd = openSync(path, 'r')
  try {
    return (await readPage(
      { fd, stat: fstatSync(fd, { bigint: true }) },
      { offset: 1, maxLines: 2000, maxChars: 1e9, ...request },
      { indexes: indexes ?? createLineIndexes(), signal: signal ?? new AbortController().signal },
    )) as TextPage
  } finally {
    closeSync(fd)
  }
}

function file(name: string, content: string | Buffer): string {
  const path = join(dir, name)
  writeFileSync(path, content)
  return path
}

/** Counts the bytes that this process reads from now on; 0 where the system does not tell. */
function bytesRead(): () => number {
  const now = () =>
    existsSync('/proc/self/io') ? Number(/rchar: (\d+)/.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]) : 0
  const before = now()
  return () => now() - before
}

const shown = (page: TextPage) => page.lines.map((line) => `${line.number}:${line.text}`)

/** What the lines are by definition: a last line end begins no other. */
function linesOf(content: string): string[] {
  const lines = content.split('\n').map((line, index, all) => (index < all.length - 1 ? line.replace(/\r$/, '') : line))
  if (lines.at(-1) === '') lines.pop()
  return lines
}

describe('readPage', () => {
  it('FI-01 numbers lines from 1; a last line end begins no other line', async () => {
    for (const content of ['a\nb\n', 'a\nb']) {
      const page = await read(file('two', content))
      expect(shown(page)).toEqual(['1:a', '2:b'])
      expect(page).toMatchObject({ totalLines: 2, eol: 'lf', encoding: 'utf-8', sha256: sha256(content) })
      expect(page.next).toBeUndefined()
    }
    expect(await read(file('e', ''))).toMatchObject({ lines: [], totalLines: 0, eol: 'none' })
    expect(shown(await read(file('n', '\n\n')))).toEqual(['1:', '2:'])
  })

  it('FI-01 gives exactly the asked lines and the next offset', async () => {
    const path = file('5000', Array.from({ length: 5000 }, (_, i) => `line ${i + 1}\n`).join(''))
    const page = await read(path, { offset: 100, maxLines: 10 })
    expect(shown(page)).toEqual(Array.from({ length: 10 }, (_, i) => `${100 + i}:line ${100 + i}`))
    expect(page).toMatchObject({ next: 110, totalLines: 5000 })
    expect(shown(await read(path, { offset: -2 }))).toEqual(['4999:line 4999', '5000:line 5000'])
    expect(shown(await read(path, { offset: -9000, maxLines: 1 }))).toEqual(['1:line 1'])
    expect(await read(path, { offset: 5001 })).toMatchObject({ lines: [], totalLines: 5000 })
    const filled = await read(path, { maxChars: 100 })
    expect(filled.lines.reduce((sum, line) => sum + `${line.number}\t${line.text}\n`.length, 0)).toBeLessThanOrEqual(
      100,
    )
    expect(filled.next).toBe(filled.lines.length + 1)
  })

  it('FI-01 FI-03 shows every line of any text, page by page, in every encoding', async () => {
    const piece = fc.constantFrom('a', 'é', '日本', '😀', '\r', '\n', '\r\n', '\t', '\u0a0d', ' ')
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece, { maxLength: 60 }).map((parts) => parts.join('')),
        fc.constantFrom<Encoding>('utf-8', 'utf-8-bom', 'utf-16le', 'utf-16be'),
        fc.integer({ min: 1, max: 7 }),
        async (content, encoding, maxLines) => {
          const marks = {
            'utf-8': '',
            'utf-8-bom': '\ufeff',
            'utf-16le': '\ufeff',
            'utf-16be': '\ufeff',
            'unknown-8bit': '',
          }
          const raw = encode(marks[encoding] + content, encoding)
          const path = file('any', raw)
          const lines: string[] = []
          for (let offset: number | undefined = 1; offset !== undefined; ) {
            const page: TextPage = await read(path, { offset, maxLines })
            expect(page).toMatchObject({ encoding, totalLines: linesOf(content).length, sha256: sha256(raw) })
            lines.push(...page.lines.map((line) => line.text))
            offset = page.next
          }
          expect(lines).toEqual(linesOf(content))
        },
      ),
      { numRuns: 200 },
    )
  })

  it('FI-02 clamps long lines and says how much is left out, never inside a surrogate pair', async () => {
    const long = `${'x'.repeat(MAX_LINE_CHARS - 1)}😀${'y'.repeat(3_000_000)}`
    const [line, after] = (await read(file('long', `${long}\r\nnext\n`))).lines
    expect(line?.text).toBe('x'.repeat(MAX_LINE_CHARS - 1))
    expect(line?.omitted).toBe(long.length - (MAX_LINE_CHARS - 1))
    expect(after).toEqual({ number: 2, text: 'next', omitted: 0 })
    const exact = await read(file('exact', `${'z'.repeat(MAX_LINE_CHARS)}\r\n`))
    expect(exact.lines).toEqual([{ number: 1, text: 'z'.repeat(MAX_LINE_CHARS), omitted: 0 }])
  })

  it('FI-03 finds out that a file is no UTF-8 however late the bytes come', async () => {
    const late = Buffer.concat([Buffer.from('ok é\n'.repeat(300_000)), Buffer.from([0x93, 0xfa, 10])])
    expect(await read(file('late', late), { maxLines: 1 })).toMatchObject({
      encoding: 'unknown-8bit',
      totalLines: 300_001,
    })
    const page = await read(file('latin', Buffer.from([0x63, 0x61, 0x66, 0xe9, 10])))
    expect(page).toMatchObject({ encoding: 'unknown-8bit', lines: [{ text: 'caf\ufffd' }] })
  })

  it('FI-01 keeps the index only of files that had been left alone, and never uses it for a changed file', async () => {
    const path = file('changing', 'a\nb\n')
    let now = Date.now()
    const indexes = createLineIndexes(() => now)
    await read(path, {}, indexes)
    const stat = () => {
      const fd = openSync(path, 'r')
      const found = fstatSync(fd, { bigint: true })
      closeSync(fd)
      return found
    }
    expect(indexes.take(stat())).toBeUndefined()
    now += 60_000
    await read(path, {}, indexes)
    expect(indexes.take(stat())).toMatchObject({ done: true })
    writeFileSync(path, 'a\n\n\n')
    utimesSync(path, 1, 1)
    expect(await read(path, {}, indexes)).toMatchObject({ totalLines: 3, sha256: sha256('a\n\n\n') })
  })

  it('FI-02 stops when it is cancelled', async () => {
    const path = file('cancel', 'x\n')
    await expect(read(path, {}, undefined, AbortSignal.abort())).rejects.toMatchObject({ code: 'cancelled' })
  })
})

describe('readPage of a file over 16 MB', () => {
  const path = join(dir, 'huge')
  const width = 64
  const count = 2_000_000
  const lineAt = (number: number) => String(number).padStart(width - 1, '.')
  const makeHuge = () => {
    const fd = openSync(path, 'w')
    for (let from = 1; from <= count; from += 50_000) {
      writeSync(fd, Array.from({ length: 50_000 }, (_, i) => `${lineAt(from + i)}\n`).join(''))
    }
    closeSync(fd)
    utimesSync(path, 1, 1)
  }

  it('FI-02 reads pages anywhere in a 128 MB file by seeking, within a few MB of memory', {
    timeout: 60_000,
  }, async () => {
    makeHuge()
    const indexes = createLineIndexes(() => Date.now() + 60_000)
    const before = process.resourceUsage().maxRSS
    const cost = bytesRead()
    const tail = await read(path, { offset: -3, maxLines: 2 }, indexes)
    expect(cost()).toBeLessThan(2_000_000)
    expect(shown(tail)).toEqual([`-3:${lineAt(count - 2)}`, `-2:${lineAt(count - 1)}`])
    expect(tail).toMatchObject({ next: -1, eol: 'lf' })
    expect(tail).not.toHaveProperty('sha256')
    expect(tail).not.toHaveProperty('totalLines')
    const far = await read(path, { offset: 1_900_000, maxLines: 1 }, indexes)
    expect(shown(far)).toEqual([`1900000:${lineAt(1_900_000)}`])
    const indexed = bytesRead()
    const again = await read(path, { offset: 1_800_001, maxLines: 2 }, indexes)
    expect(indexed()).toBeLessThan(2_000_000)
    expect(shown(again)).toEqual([`1800001:${lineAt(1_800_001)}`, `1800002:${lineAt(1_800_002)}`])
    expect(await read(path, { offset: count + 1 }, indexes)).toMatchObject({ lines: [], totalLines: count })
    expect(process.resourceUsage().maxRSS - before).toBeLessThan(64 * 1024)
  })

  it('FI-02 counts from the end across blocks and knows the first line when it reaches it', async () => {
    for (const encoding of ['utf-8', 'utf-16le', 'utf-16be'] as const) {
      const start = encoding === 'utf-8' ? '' : '\ufeff'
      const lines = Array.from({ length: 3000 }, (_, i) => `${i + 1}:${'é'.repeat(3000)}`)
      const many = file(`back-${encoding}`, encode(`${start}${lines.join('\r\n')}\r\n`, encoding))
      expect(3000 * 6000).toBeGreaterThan(WHOLE_FILE_BYTES)
      const page = await read(many, { offset: -2500, maxLines: 1 })
      expect(page.lines[0]).toMatchObject({ number: -2500, text: lines[500]?.slice(0, MAX_LINE_CHARS) })
      expect(page).toMatchObject({ next: -2499, eol: 'crlf', encoding })
      expect((await read(many, { offset: -3001, maxLines: 1 })).lines[0]).toMatchObject({ number: 1 })
      expect((await read(many, { offset: -1 })).lines).toHaveLength(1)
      expect((await read(many, { offset: 2999 })).lines.map((line) => line.number)).toEqual([2999, 3000])
    }
  })
})
