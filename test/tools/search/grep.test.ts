import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { rgPath } from '@vscode/ripgrep'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { ToolContext } from '../../../src/tools/tool.js'
import { createSandbox, refusal, type Sandbox } from '../../helpers/tool-context.js'
import { call, createSearch, fill, tools } from './search-context.js'

let search: ReturnType<typeof createSearch>
let sandbox: Sandbox

beforeAll(() => {
  search = createSearch()
})
afterAll(() => search.close())
beforeEach(() => {
  sandbox = createSandbox()
})
afterEach(() => sandbox.remove())

const grep = (args: Record<string, unknown>, overrides?: Partial<ToolContext>) =>
  call(tools.grep, sandbox, search.processes, args, overrides)

describe('results', () => {
  it('SR-01 shows matching lines with numbers, names of files, and counts', async () => {
    fill(sandbox, { 'a.ts': 'one\ntwo\none two\n', 'b/c.ts': 'one\r\n', 'd.ts': 'three\n' })
    const content = await grep({ pattern: 'one' })
    expect(content.text).toMatch(/^3 matches in 2 files\n\na\.ts\n {2}1: one\n {2}3: one two\n\nb\/c\.ts\n {2}1: one\n/)
    expect(content.facts).toEqual({ matches: 3, files: 2, truncated: false })
    const files = await grep({ pattern: 'one', output_mode: 'files' })
    expect(files.body).toEqual(['a.ts', 'b/c.ts'])
    expect(files.facts).toEqual({ files: 2, truncated: false })
    const count = await grep({ pattern: 'one', output_mode: 'count' })
    expect(count.body).toEqual(['a.ts: 2', 'b/c.ts: 1'])
    expect(count.facts).toEqual({ matches: 3, files: 2, truncated: false })
  })

  it('SR-01 narrows by case, type, glob and path, and searches one file alone', async () => {
    fill(sandbox, { 'a.ts': 'Word', 'a.py': 'word', 'src/b.ts': 'word', 'src/deep/c.ts': 'word' })
    const names = async (args: object) => (await grep({ pattern: 'word', output_mode: 'files', ...args })).body
    expect(await names({})).toEqual(['a.py', 'src/b.ts', 'src/deep/c.ts'])
    expect(await names({ case_insensitive: true, type: 'ts' })).toEqual(['a.ts', 'src/b.ts', 'src/deep/c.ts'])
    expect(await names({ glob: '*.ts' })).toEqual(['src/b.ts', 'src/deep/c.ts'])
    expect(await names({ glob: 'src/*.ts' })).toEqual(['src/b.ts'])
    expect(await names({ glob: '!src/**' })).toEqual(['a.py'])
    expect(await names({ glob: '!src/**', type: 'ts' })).toEqual([])
    expect(await names({ path: 'src', glob: '*.{ts,py}' })).toEqual(['src/b.ts', 'src/deep/c.ts'])
    expect(await names({ path: 'src/b.ts' })).toEqual(['src/b.ts'])
  })

  it('SR-01 shows lines around, parted where they do not touch', async () => {
    fill(sandbox, { 'a.txt': Array.from({ length: 12 }, (_, i) => (i % 6 === 2 ? 'hit' : `l${i + 1}`)).join('\n') })
    const { body } = await grep({ pattern: 'hit', before: 1, after: 1 })
    expect(body).toEqual(['a.txt', '  2- l2', '  3: hit', '  4- l4', '  --', '  8- l8', '  9: hit', '  10- l10'])
    const second = await grep({ pattern: 'hit', before: 1, after: 1, offset: 1 })
    expect(second.body).toEqual(['a.txt', '  8- l8', '  9: hit', '  10- l10'])
    const first = await grep({ pattern: 'hit', before: 1, after: 1, limit: 1 })
    expect(first.body).toEqual(['a.txt', '  2- l2', '  3: hit', '  4- l4'])
    expect(first.facts).toEqual({ matches: 1, files: 1, truncated: true, next_offset: 1 })
  })

  it('SR-01 matches across lines only when asked', async () => {
    fill(sandbox, { 'a.txt': 'x\nfoo {\n  bar\n}\n' })
    expect((await grep({ pattern: 'foo.*bar', multiline: true })).body).toEqual(['a.txt', '  2: foo {', '  3:   bar'])
    expect((await grep({ pattern: 'foo.*bar' })).facts.matches).toBe(0)
  })

  it('SR-01 FC-S06 a pattern that begins with a dash is a pattern', async () => {
    fill(sandbox, { 'a.txt': 'use --pdf-engine or -77\n' })
    for (const pattern of ['--pdf-engine', '-77', '--', '-e']) {
      expect((await grep({ pattern })).facts.matches, pattern).toBe(1)
    }
  })

  it('SR-01 $ ends a line also in files with CRLF', async () => {
    fill(sandbox, { 'a.txt': 'end\r\nend of\r\n' })
    expect((await grep({ pattern: 'end$' })).body).toEqual(['a.txt', '  1: end'])
  })
})

describe('cap and pages', () => {
  it('SR-01 one cap over all files: 250, and pages give everything once', async () => {
    fill(sandbox, Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`f${i}.txt`, 'hit\n'.repeat(10)])))
    const first = await grep({ pattern: 'hit' })
    expect(first.facts).toEqual({ matches: 250, files: 25, truncated: true, next_offset: 250 })
    expect(first.text).toContain('More: this is 1–250 of 400 matches; next_offset 250.')
    const second = await grep({ pattern: 'hit', offset: 250 })
    expect(second.facts).toEqual({ matches: 150, files: 15, truncated: false })
    const past = await grep({ pattern: 'hit', offset: 400 })
    expect(past.text).toMatch(/^Nothing at offset 400 of 400 matches\./)
  })

  it('SR-01 pages of a search too wide to collect join without gap or repeat, in ripgrep’s own path order', async () => {
    const names = ['a/x', 'a.b', 'a-b', 'a b', 'Z', 'é', 'a/y/z', 'ab', '𝒳', '\u{ffee}']
    fill(sandbox, Object.fromEntries(names.map((name) => [name, 'hit\n'.repeat(700)])))
    const seen: string[] = []
    let offset: unknown = 0
    while (typeof offset === 'number') {
      const page = await grep({ pattern: 'hit', offset, limit: 999 })
      let file = ''
      for (const line of page.text.split('\n')) {
        if (/^ {2}\d+: hit$/.test(line)) seen.push(`${file}${line}`)
        else file = line
      }
      offset = page.facts.next_offset
    }
    expect(seen.length).toBe(7000)
    expect(new Set(seen).size).toBe(7000)
    const order = execFileSync(rgPath, ['--files', '--sort', 'path'], { cwd: sandbox.root })
      .toString()
      .trim()
      .split('\n')
    expect([...new Set(seen.map((line) => line.replace(/ {2}\d+: hit$/, '')))]).toEqual(order)
    // The parallel search, sorted here, has the same order.
    expect((await grep({ pattern: 'hit', output_mode: 'files' })).body).toEqual(order)
  })

  it('SR-01 a page far into a wide search shows its lines around once', async () => {
    fill(sandbox, { 'a.txt': 'hit\nother\n'.repeat(6000), 'b.txt': 'hit\n' })
    const { body, facts } = await grep({ pattern: 'hit', before: 1, after: 1, offset: 5500, limit: 2 })
    expect(body).toEqual([
      'a.txt',
      ...[11000, 11001, 11002, 11003, 11004].map((n) => `  ${n}${n % 2 ? ': hit' : '- other'}`),
    ])
    expect(facts).toEqual({ matches: 2, files: 1, truncated: true, next_offset: 5502 })
    const last = await grep({ pattern: 'hit', before: 1, after: 1, offset: 5999 })
    expect(last.body).toEqual(['a.txt', '  11998- other', '  11999: hit', '  12000- other', '', 'b.txt', '  1: hit'])
  })

  it('SR-01 the text stays within the inline limit unless a limit asks for more', async () => {
    fill(sandbox, { 'a.txt': `${'x'.repeat(400)}hit\n`.repeat(200) })
    const limits = { inlineText: 10_000, inlineMedia: 1_048_576 }
    const short = await grep({ pattern: 'hit' }, { limits })
    expect(short.text.length).toBeLessThan(10_000)
    expect(short.facts.truncated).toBe(true)
    const shown = Number(short.facts.matches)
    expect(short.facts.next_offset).toBe(shown)
    const rest = await grep({ pattern: 'hit', offset: shown, limit: 200 }, { limits })
    expect(rest.facts).toEqual({ matches: 200 - shown, files: 1, truncated: false })
  })

  it('SR-01 FC-S07 a megabyte line is cut around the hit', async () => {
    fill(sandbox, { 'min.js': `${'a'.repeat(1_500_000)}needle${'é'.repeat(800_000)}`, 'after.js': 'needle' })
    const { text, body } = await grep({ pattern: 'needle' })
    expect(text.length).toBeLessThan(1_500)
    expect(body.slice(0, 2)).toEqual(['after.js', '  1: needle'])
    expect(text).toMatch(/min\.js\n {2}1: \[… 1499880 bytes\] a{120}needleé+ \[\d+ bytes …\]\n/)
  })

  it('SR-01 a line beyond what is read is counted and said', async () => {
    fill(sandbox, { 'huge.txt': `needle${'a'.repeat(17 * 1024 * 1024)}\nneedle\n` })
    const { text, facts } = await grep({ pattern: 'needle' })
    expect(facts.matches).toBe(2)
    expect(text).toContain('?: [a matching line of over 16 MB is not shown]\n  2: needle')
  })
})

describe('odd files', () => {
  it('SR-01 FC-S03 lines that are not UTF-8 are shown escaped beside others', async () => {
    fill(sandbox, { 'gbk.txt': Buffer.from('d6d0cec46e6565646c650a', 'hex'), 'ok.txt': 'needle\n' })
    const { text, facts } = await grep({ pattern: 'needle' })
    expect(facts.matches).toBe(2)
    expect(text).toContain('gbk.txt\n  1: \\xd6\\xd0\\xce\\xc4needle\n')
  })

  it('SR-01 files with a BOM and in UTF-16 are searched as text', async () => {
    const utf16 = Buffer.from('\ufefferste\r\nnädel\r\n', 'utf16le')
    fill(sandbox, { 'bom.txt': '\ufeffx\nnädel\n', 'le.txt': utf16, 'be.txt': Buffer.from(utf16).swap16() })
    const { text, facts } = await grep({ pattern: 'nädel' })
    expect(facts.matches).toBe(3)
    for (const name of ['bom', 'le', 'be']) expect(text).toContain(`${name}.txt\n  2: nädel\n`)
  })

  it('SR-01 FC-S02 names that are not UTF-8 are counted, names with line breaks are quoted, and nothing else is lost', async () => {
    const bad = Buffer.concat([Buffer.from(`${sandbox.root}/bad`), Buffer.from([0xff]), Buffer.from('.txt')])
    writeFileSync(bad, 'needle')
    fill(sandbox, { 'good.txt': 'needle', 'two\nlines.txt': 'needle' })
    const content = await grep({ pattern: 'needle' })
    expect(content.facts).toMatchObject({ matches: 2, files: 2 })
    expect(content.text).toContain('1 file left out: the name is not UTF-8.')
    const count = await grep({ pattern: 'needle', output_mode: 'count' })
    expect(count.body).toEqual(['good.txt: 1', '"two\\nlines.txt": 1'])
    expect((await grep({ pattern: 'needle', output_mode: 'files' })).body).toEqual(['good.txt', '"two\\nlines.txt"'])
  })

  it('SR-01 FC-R02 FIFOs are skipped, and named outright they are refused at once', async () => {
    execFileSync('mkfifo', [path.join(sandbox.root, 'p')])
    fill(sandbox, { 'a.txt': 'needle' })
    expect((await grep({ pattern: 'needle', hidden: true, ignored: true })).facts.matches).toBe(1)
    const error = await refusal(() => grep({ pattern: 'needle', path: 'p' }))
    expect(error).toMatchObject({ code: 'invalid_arguments', message: expect.stringContaining('not a regular file') })
  })

  it('SR-01 FC-S05 brackets, braces and spaces in path are literal', async () => {
    fill(sandbox, {
      'app/[slug]/page.tsx': 'x',
      'app/(group)/page.tsx': 'x',
      'my dir/{a,b}.ts': 'x',
      'app/s/page.tsx': 'x',
    })
    const names = async (args: object) => (await grep({ pattern: 'x', output_mode: 'files', ...args })).body
    expect(await names({ path: 'app/[slug]' })).toEqual(['app/[slug]/page.tsx'])
    expect(await names({ path: 'app/(group)', glob: '*.tsx' })).toEqual(['app/(group)/page.tsx'])
    expect(await names({ path: 'my dir/{a,b}.ts' })).toEqual(['my dir/{a,b}.ts'])
  })
})

describe('what is left out', () => {
  it('SR-01 finding nothing says what was skipped and how to include it', async () => {
    fill(sandbox, {
      '.hidden/a.txt': 'needle',
      '.ignore': '*.log\n',
      'b.log': 'needle',
      'c.bin': 'needle\0',
      'd.txt': 'other',
    })
    const { text } = await grep({ pattern: 'needle', glob: '*.{txt,log}' })
    expect(text).toBe(
      'No match for "needle" in the workspace (only files of glob *.{txt,log}).\nNot searched: hidden files (hidden: true), ' +
        'files that .gitignore or .ignore exclude (ignored: true), binary files, files that look like secrets (Read one: the owner is asked), links.',
    )
    const all = await grep({ pattern: 'needle', hidden: true, ignored: true, output_mode: 'files' })
    expect(all.body).toEqual(['.hidden/a.txt', 'b.log'])
  })

  it('SR-01 a glob does not bring back ignored or hidden files', async () => {
    fill(sandbox, { '.ignore': '*.min.js\n', 'x.min.js': 'needle', 'y.js': 'needle', '.z.js': 'needle' })
    const { body } = await grep({ pattern: 'needle', glob: '*.js', output_mode: 'files' })
    expect(body).toEqual(['y.js'])
    expect((await grep({ pattern: 'needle', type: 'js', output_mode: 'files' })).body).toEqual(['y.js'])
  })

  it('SR-01 FC-S01 a glob or path that names a dot folder finds what is in it', async () => {
    fill(sandbox, {
      '.github/workflows/ci.yml': 'node',
      'sub/.github/x.yml': 'node',
      '.git/config': 'node',
      'a.yml': 'x',
    })
    const names = async (args: object) => (await grep({ pattern: 'node', output_mode: 'files', ...args })).body
    expect(await names({ glob: '.github/**' })).toEqual(['.github/workflows/ci.yml'])
    expect(await names({ glob: '**/.github/**' })).toEqual(['.github/workflows/ci.yml', 'sub/.github/x.yml'])
    expect(await names({ path: '.github' })).toEqual(['.github/workflows/ci.yml'])
    expect(await names({ hidden: true })).toEqual(['.github/workflows/ci.yml', 'sub/.github/x.yml'])
    expect(await names({ glob: '.git/*' })).toEqual(['.git/config'])
  })
})

describe('failures', () => {
  it('SR-01 TQ-04 regular expressions and types that are refused are explained', async () => {
    const broken = await refusal(() => grep({ pattern: 'foo(' }))
    expect(broken.code).toBe('invalid_arguments')
    expect(broken.message).toMatch(/^The pattern is no valid regular expression: unclosed group\./)
    expect(broken.hint).toContain('backslash')
    const around = await refusal(() => grep({ pattern: '(?<=a)b' }))
    expect(around.message).toMatch(/^The pattern is not accepted: look-around/)
    const lineEnd = await refusal(() => grep({ pattern: 'a\nb' }))
    expect(lineEnd.hint).toContain('multiline: true')
    const type = await refusal(() => grep({ pattern: 'a', type: 'nosuch' }))
    expect(type).toMatchObject({ code: 'invalid_arguments', message: 'There is no file type "nosuch".' })
    expect((await refusal(() => grep({ pattern: '(\\w{900}){900}' }))).message).toBe(
      'The pattern is too large to compile.',
    )
  })

  it('TQ-04 a folder that is not there is not found', async () => {
    expect((await refusal(() => grep({ pattern: 'a', path: 'nowhere' }))).code).toBe('not_found')
  })

  it('PA-01 SR-03 FC-P05 folders outside the workspace are refused, also a sibling whose name begins alike', async () => {
    mkdirSync(`${sandbox.root}-evil`)
    writeFileSync(`${sandbox.root}-evil/f`, 'needle')
    for (const place of [`${sandbox.root}-evil`, '../ws-evil', '/', '..', sandbox.out]) {
      expect((await refusal(() => grep({ pattern: 'needle', path: place }))).code, place).toBe('path_denied')
    }
    expect((await refusal(() => grep({ pattern: 'needle', glob: '../ws-evil/*' }))).code).toBe('path_denied')
  })

  it('PA-02 SR-03 links out are refused as path and not followed below it', async () => {
    writeFileSync(path.join(sandbox.out, 'secret.txt'), 'needle')
    symlinkSync(sandbox.out, path.join(sandbox.root, 'out'))
    symlinkSync(path.join(sandbox.out, 'secret.txt'), path.join(sandbox.root, 'file.txt'))
    expect((await refusal(() => grep({ pattern: 'needle', path: 'out' }))).code).toBe('path_denied')
    expect((await refusal(() => grep({ pattern: 'needle', path: 'file.txt' }))).code).toBe('path_denied')
    expect((await refusal(() => grep({ pattern: 'needle', glob: 'out/*' }))).code).toBe('path_denied')
    expect((await grep({ pattern: 'needle', hidden: true, ignored: true })).facts.matches).toBe(0)
  })
})

describe("Kiki's home", () => {
  it('PA-03 SR-03 FC-S04 inside the workspace it is skipped and said, also through links and hard links', async () => {
    sandbox.remove()
    sandbox = createSandbox({ homeInside: true })
    fill(sandbox, { '.kiki/kiki.db': 'token', 'src/a.ts': 'token', '.env': 'token' })
    symlinkSync(sandbox.home, path.join(sandbox.root, 'src/k'))
    linkSync(path.join(sandbox.home, 'kiki.db'), path.join(sandbox.root, 'src/innocent.txt'))
    linkSync(path.join(sandbox.root, 'src/a.ts'), path.join(sandbox.root, 'src/twin.ts'))
    for (const output_mode of ['content', 'files', 'count']) {
      const all = await grep({ pattern: 'token', hidden: true, ignored: true, output_mode })
      expect(all.text).not.toMatch(/kiki\.db|innocent/)
      expect(all.facts.files).toBe(3)
      expect(all.text).toContain("Kiki's own home")
    }
    expect((await grep({ pattern: 'token', path: './src' })).facts).toMatchObject({ files: 2, matches: 2 })
    for (const place of ['.kiki', 'src/k', '.kiki/kiki.db', 'src/innocent.txt', sandbox.home]) {
      expect((await refusal(() => grep({ pattern: 'token', path: place }))).code, place).toBe('path_denied')
    }
    expect((await refusal(() => grep({ pattern: 'token', glob: '.kiki/**' }))).code).toBe('path_denied')
  })

  it('PA-03 a home with a name full of wildcards is skipped, and its neighbours are not', async () => {
    const home = path.join(sandbox.root, 'h [a]{b}*!')
    fill(sandbox, { 'h [a]{b}*!/kiki.db': 'token', 'h a{b}x!/f': 'token', 'sub/h [a]{b}*!/f': 'token' })
    const { createHomeFence } = await import('../../../src/workspace/fence.js')
    const fence = createHomeFence(home)
    const workspace = { ...sandbox.context().workspace, home, fence }
    const { body } = await grep({ pattern: 'token', output_mode: 'files' }, { workspace })
    expect(body).toEqual(['h a{b}x!/f', 'sub/h [a]{b}*!/f'])
  })
})
