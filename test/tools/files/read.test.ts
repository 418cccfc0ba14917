import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { sha256 } from '../../../src/lib/json.js'
import { createRead } from '../../../src/tools/files/read.js'
import { createSandbox, refusal, type Sandbox } from '../../helpers/tool-context.js'
import { call, textOf } from './tool-call.js'

let folder: Sandbox
const at = (name: string) => join(folder.root, name)
beforeEach(() => {
  folder = createSandbox()
})
afterEach(() => folder.remove())

async function read(path: string, args: Record<string, unknown> = {}, inlineText?: number) {
  const context = folder.context(inlineText === undefined ? {} : { limits: { inlineText, inlineMedia: 1_048_576 } })
  const result = await call(createRead(), context, { path, ...args })
  return { text: textOf(result), lines: textOf(result).split('\n'), facts: result.facts ?? {} }
}

describe('Read', () => {
  it('FI-01 shows numbered lines, each byte-equal after the first tab, with its facts (FC-E04, FC-R03, FC-R07)', async () => {
    const content = 'all:\n\techo\ttab  \n'
    writeFileSync(at('Makefile'), content)
    const { text, facts } = await read('Makefile')
    expect(text).toBe('1\tall:\n2\t\techo\ttab  ')
    expect(facts).toEqual({
      from: 1,
      to: 2,
      encoding: 'utf-8',
      eol: 'lf',
      truncated: false,
      total_lines: 2,
      sha256: sha256(content),
    })
    writeFileSync(at('open'), 'a\nb')
    expect((await read('open')).facts).toMatchObject({ total_lines: 2, to: 2 })
  })

  it('FI-01 takes limit and offset at their word and names the next offset in the last line (FC-R04)', async () => {
    writeFileSync(at('many'), Array.from({ length: 5000 }, (_, i) => `l${i + 1}\r\n`).join(''))
    const page = await read('many', { offset: 100, limit: 10 })
    expect(page.lines.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, i) => `${100 + i}\tl${100 + i}`))
    expect(page.lines.slice(10)).toEqual(['[Lines 100 to 109 of 5000. Next: offset 110.]'])
    expect(page.facts).toMatchObject({ from: 100, to: 109, truncated: true, next_offset: 110, eol: 'crlf' })
    const whole = await read('many')
    expect(whole.facts).toMatchObject({ from: 1, to: 2000, next_offset: 2001 })
    expect((await read('many', { offset: -2 })).text).toBe('4999\tl4999\n5000\tl5000')
  })

  it('FI-01 stays within the inline limit unless a limit is asked for, and no line is lost between pages (FC-R01)', async () => {
    const content = Array.from({ length: 900 }, (_, i) => `${'x'.repeat(i % 97)}😀${i}\n`).join('')
    writeFileSync(at('wide'), content)
    let joined = ''
    for (let offset: unknown = 1; offset !== undefined; ) {
      const page = await read('wide', { offset }, 3000)
      expect(page.text.length).toBeLessThanOrEqual(3000)
      for (const line of page.lines) if (/^\d+\t/.test(line)) joined += `${line.replace(/^\d+\t/, '')}\n`
      offset = page.facts.next_offset
    }
    expect(sha256(joined)).toBe(sha256(content))
    expect((await read('wide', { limit: 900 }, 3000)).text.length).toBeGreaterThan(20_000)
    expect((await read('wide', {}, 1)).facts).toMatchObject({ from: 1, to: 1, next_offset: 2 })
  })

  it('FI-01 TQ-04 answers past the end and for an empty file in words (FC-R05, FC-R07)', async () => {
    writeFileSync(at('two'), 'a\nb\n')
    writeFileSync(at('e'), '')
    writeFileSync(at('bom'), '\ufeff')
    const past = await read('two', { offset: 900 })
    expect(past.text).toBe(
      '[two: offset 900 is past the end. It has 2 lines. Use an offset from 1, or a negative one to count from the end.]',
    )
    expect(past.facts).toMatchObject({ from: 0, to: 0, total_lines: 2, truncated: false })
    expect((await read('e')).text).toBe('[e: empty file (0 bytes).]')
    expect((await read('e')).facts).toMatchObject({ total_lines: 0, eol: 'none', sha256: sha256('') })
    expect((await read('bom')).text).toContain('empty file (3 bytes: only a byte order mark)')
  })

  it('FI-01 TQ-04 refuses offset 0 with what to use instead', () => {
    const parsed = createRead().input.safeParse({ path: 'a', offset: 0 })
    expect(parsed.error?.issues[0]?.message).toBe('begins at 1: use 1 for the first line, -1 for the last')
    expect(createRead().input.safeParse({ path: 'a', limit: 0 }).success).toBe(false)
    expect(createRead().input.safeParse({ path: 'a', extra: 1 }).success).toBe(false)
  })

  it('FI-02 marks a clamped line with the number of characters left out', async () => {
    writeFileSync(at('long'), `${'x'.repeat(5000)}\nshort\n`)
    const page = await read('long')
    expect(page.lines).toEqual([`1\t${'x'.repeat(2000)}… [3000 more characters of this line left out]`, '2\tshort'])
    expect(page.facts).toMatchObject({ truncated: true, total_lines: 2 })
  })

  it('FI-03 decodes UTF-16 and UTF-8 with byte order mark and names the encoding (FC-R06)', async () => {
    writeFileSync(at('le'), Buffer.from('\ufeffhi é\n', 'utf16le'))
    writeFileSync(at('be'), Buffer.from('\ufeffhi é\n', 'utf16le').swap16())
    writeFileSync(at('u8'), '\ufeffhi é\r\n')
    expect(await read('le')).toMatchObject({ text: '1\thi é\n[Encoding: utf-16le.]', facts: { encoding: 'utf-16le' } })
    expect(await read('be')).toMatchObject({ text: '1\thi é\n[Encoding: utf-16be.]', facts: { encoding: 'utf-16be' } })
    expect(await read('u8')).toMatchObject({ text: '1\thi é\n[Encoding: utf-8-bom.]', facts: { eol: 'crlf' } })
  })

  it('FI-03 TQ-04 tells type and size of a binary file and names ReadMedia; legacy text is shown and said so', async () => {
    writeFileSync(at('x.txt'), Buffer.from('\x89PNG\r\n\x1a\n\0\0', 'latin1'))
    expect(await read('x.txt')).toMatchObject({
      text: 'x.txt: binary file, image/png, 10 bytes. It is not text; ReadMedia shows it where it is shared.',
      facts: { binary: true, type: 'image/png', size: 10 },
    })
    writeFileSync(at('sjis'), Buffer.from([0x93, 0xfa, 10, 0x61, 10]))
    const legacy = await read('sjis')
    expect(legacy.lines.slice(0, 2)).toEqual(['1\t\ufffd\ufffd', '2\ta'])
    expect(legacy.lines[2]).toContain('not valid UTF-8 (encoding: unknown-8bit)')
    expect(legacy.facts).toMatchObject({ encoding: 'unknown-8bit' })
  })

  it('FI-04 TQ-04 names what is no regular file at once (FC-R02, FC-R05)', async () => {
    execFileSync('mkfifo', [at('p')])
    mkdirSync(at('d'))
    symlinkSync('/dev/zero', at('z'))
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(at('s'), resolve))
    const codes: Record<string, string> = {}
    for (const name of ['p', 'd', 's']) {
      const error = await refusal(() => read(name))
      codes[name] = error.code
      expect(error.message).toMatch(/not a regular file|named pipe|socket|folder/)
    }
    expect(codes).toEqual({ p: 'invalid_arguments', d: 'invalid_arguments', s: 'invalid_arguments' })
    expect(await refusal(() => read('z'))).toMatchObject({ code: 'path_denied' })
    await new Promise((resolve) => server.close(resolve))
  })

  it('FI-01 TQ-04 an absent file is not found, also where only the Unicode form of its name differs (FC-E03)', async () => {
    writeFileSync(at('cafe\u0301.txt'), 'x\n')
    const error = await refusal(() => read('caf\u00e9.txt'))
    expect(error.code).toBe('not_found')
    expect(JSON.stringify([error.message, error.hint, error.data])).toContain('cafe\u0301.txt')
  })

  it('FI-01 reads what is there now, page after page, with one index (FC-E05)', async () => {
    const tool = createRead()
    for (let round = 0; round < 20; round++) {
      appendFileSync(at('log'), `line ${round + 1}\n`)
      const result = await call(tool, folder.context(), { path: 'log', offset: -1 })
      expect(textOf(result)).toBe(`${round + 1}\tline ${round + 1}`)
    }
  })

  it('FI-01 TQ-04 a cancelled read says so', async () => {
    writeFileSync(at('a'), 'x\n')
    const context = folder.context({ signal: AbortSignal.abort() })
    expect(await refusal(() => call(createRead(), context, { path: 'a' }))).toMatchObject({ code: 'cancelled' })
  })

  it('FI-01 describes itself within 900 characters', () => {
    expect(createRead().description.length).toBeLessThan(900)
    expect(createRead()).toMatchObject({ name: 'Read', effect: 'read', family: 'files' })
  })
})
