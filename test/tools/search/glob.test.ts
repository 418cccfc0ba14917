import { execFileSync } from 'node:child_process'
import { linkSync, mkdirSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import path from 'node:path'
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

const glob = (args: Record<string, unknown>, overrides?: Partial<ToolContext>) =>
  call(tools.glob, sandbox, search.processes, args, overrides)
const names = async (args: Record<string, unknown>) => (await glob(args)).body.toSorted()

describe('names', () => {
  it('SR-02 newest first; the same moment by path', async () => {
    fill(sandbox, { 'old.ts': '', 'sub/new.ts': '', 'b.ts': '', 'a.ts': '' })
    const ages = { 'old.ts': 3, 'b.ts': 2, 'a.ts': 2, 'sub/new.ts': 1 }
    for (const [name, age] of Object.entries(ages)) utimesSync(path.join(sandbox.root, name), 1e9, 1e9 - age * 60)
    const { text, body, facts } = await glob({ pattern: '**/*.ts' })
    expect(text).toMatch(/^4 files match, newest first\.\n\n/)
    expect(body).toEqual(['sub/new.ts', 'a.ts', 'b.ts', 'old.ts'])
    expect(facts).toEqual({ files: 4, total: 4, truncated: false })
  })

  it('SR-02 braces, folders, single characters, classes and names alone', async () => {
    fill(sandbox, {
      'src/a/x.ts': '',
      'src/b/y.ts': '',
      'src/c/z.ts': '',
      'src/a/deep/w.ts': '',
      'r.md': '',
      'src/r.md': '',
    })
    expect(await names({ pattern: 'src/{a,b}/*.ts' })).toEqual(['src/a/x.ts', 'src/b/y.ts'])
    expect(await names({ pattern: 'src/[ac]/?.ts' })).toEqual(['src/a/x.ts', 'src/c/z.ts'])
    expect(await names({ pattern: 'src/[!a]/*.ts' })).toEqual(['src/b/y.ts', 'src/c/z.ts'])
    expect(await names({ pattern: 'src/**/*.ts' })).toHaveLength(4)
    expect(await names({ pattern: '*.md' })).toEqual(['r.md', 'src/r.md'])
    expect(await names({ pattern: './*.md' })).toEqual(['r.md'])
    expect(await names({ pattern: 'src/a/' })).toEqual(['src/a/deep/w.ts', 'src/a/x.ts'])
    expect(await names({ pattern: `${sandbox.root}/src/b/*` })).toEqual(['src/b/y.ts'])
    expect(await names({ path: 'src', pattern: 'a/*' })).toEqual(['src/a/x.ts'])
  })

  it('SR-02 FC-S05 spaces, braces, brackets, parentheses and Unicode in names; path is literal', async () => {
    fill(sandbox, {
      'app/[slug]/page.tsx': '',
      'app/s/page.tsx': '',
      'app/(group)/page.tsx': '',
      'my dir/{a,b}.ts': '',
      'my dir/a.ts': '',
      'cafe\u0301/re\u0301sume\u0301.txt': '',
      '日本/😀.txt': '',
      'two\nlines.txt': '',
    })
    expect(await names({ path: 'app/[slug]', pattern: '*.tsx' })).toEqual(['app/[slug]/page.tsx'])
    expect(await names({ pattern: 'app/[slug]/*.tsx' })).toEqual(['app/[slug]/page.tsx', 'app/s/page.tsx'])
    expect(await names({ pattern: 'app/(group)/*' })).toEqual(['app/(group)/page.tsx'])
    expect(await names({ pattern: 'my dir/{a,b}.ts' })).toEqual(['my dir/a.ts', 'my dir/{a,b}.ts'])
    expect(await names({ pattern: '**/r\u00e9sum?.txt' })).toEqual(['cafe\u0301/re\u0301sume\u0301.txt'])
    expect(await names({ pattern: '日本/?.txt' })).toEqual(['日本/😀.txt'])
    expect(await names({ pattern: 'two*' })).toEqual(['"two\\nlines.txt"'])
  })

  it('SR-02 FC-S02 a name that is not UTF-8 is counted, and the others are listed', async () => {
    writeFileSync(Buffer.concat([Buffer.from(`${sandbox.root}/bad`), Buffer.from([0xff]), Buffer.from('.txt')]), '')
    fill(sandbox, { 'good.txt': '' })
    const { body, text } = await glob({ pattern: '**/*.txt' })
    expect(body).toEqual(['good.txt'])
    expect(text).toContain('1 left out: the name is not UTF-8')
  })

  it('SR-02 only regular files are listed', async () => {
    execFileSync('mkfifo', [path.join(sandbox.root, 'p.txt')])
    fill(sandbox, { 'a.txt': '' })
    mkdirSync(path.join(sandbox.root, 'd.txt'))
    symlinkSync('a.txt', path.join(sandbox.root, 'l.txt'))
    expect(await names({ pattern: '*.txt' })).toEqual(['a.txt'])
  })
})

describe('cap and pages', () => {
  it('SR-02 one cap, and pages give everything once', async () => {
    fill(sandbox, Object.fromEntries(Array.from({ length: 600 }, (_, i) => [`d${i % 7}/f${i}.txt`, ''])))
    const seen: string[] = []
    let offset: unknown = 0
    while (typeof offset === 'number') {
      const page = await glob({ pattern: '**', offset })
      expect(page.body.length).toBeLessThanOrEqual(250)
      seen.push(...page.body)
      offset = page.facts.next_offset
    }
    expect(seen.length).toBe(600)
    expect(new Set(seen).size).toBe(600)
    expect((await glob({ pattern: '**' })).text).toContain('More: this is 1–250 of 600; next_offset 250.')
    expect((await glob({ pattern: '**', offset: 600 })).text).toMatch(/^Nothing at offset 600 of 600 files\./)
    expect((await glob({ pattern: '**', limit: 600 })).facts).toEqual({ files: 600, total: 600, truncated: false })
  })
})

describe('hidden and ignored', () => {
  it('SR-02 FC-S01 dot folders are found where the pattern names them, and the answer says what was left out', async () => {
    fill(sandbox, { '.github/workflows/ci.yml': '', 'a.yml': '', '.b.yml': '', '.ignore': 'x.yml\n', 'x.yml': '' })
    expect(await names({ pattern: '.github/**/*.yml' })).toEqual(['.github/workflows/ci.yml'])
    expect(await names({ pattern: '**/*.yml' })).toEqual(['a.yml'])
    expect(await names({ pattern: '{.github,.}/**/*.yml', hidden: true })).toContain('.github/workflows/ci.yml')
    expect(await names({ pattern: '.*.yml' })).toEqual(['.b.yml'])
    expect(await names({ pattern: '*.yml', ignored: true })).toEqual(['a.yml', 'x.yml'])
    const none = await glob({ pattern: 'ci.yml' })
    expect(none.text).toBe(
      'No file matches "ci.yml" in the workspace.\nNot searched: hidden files (hidden: true), files that .gitignore or .ignore ' +
        'exclude (ignored: true), links.',
    )
  })
})

describe('failures', () => {
  it('SR-02 PA-01 FC-P05 folders outside the workspace are refused', async () => {
    mkdirSync(`${sandbox.root}-evil`)
    for (const args of [{ path: '..' }, { path: `${sandbox.root}-evil` }, { path: '/etc' }, { path: '../ws-evil' }]) {
      expect((await refusal(() => glob({ pattern: '*', ...args }))).code).toBe('path_denied')
    }
    for (const pattern of ['/etc/*.conf', '../*', '../ws-evil/*', `${sandbox.root}-evil/*`]) {
      expect((await refusal(() => glob({ pattern }))).code, pattern).toBe('path_denied')
    }
  })

  it('SR-02 TQ-04 patterns and paths that cannot be meant are explained', async () => {
    fill(sandbox, { 'a.txt': '' })
    expect(await refusal(() => glob({ pattern: '*', path: 'a.txt' }))).toMatchObject({
      code: 'invalid_arguments',
      message: '"a.txt" is a file; Glob starts in a folder.',
    })
    expect((await refusal(() => glob({ pattern: '*', path: 'nowhere' }))).code).toBe('not_found')
    expect((await refusal(() => glob({ pattern: '{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}' }))).message).toContain(
      '128',
    )
    const { text, facts } = await glob({ pattern: 'nowhere/*.ts' })
    expect(text).toContain('the folder that it starts with is not there')
    expect(facts).toEqual({ files: 0, truncated: false })
  })
})

describe("Kiki's home and links", () => {
  it('PA-03 SR-03 FC-S04 the home inside the workspace is skipped and said; hard links to its files are left out', async () => {
    sandbox.remove()
    sandbox = createSandbox({ homeInside: true })
    fill(sandbox, { '.kiki/kiki.db': '', 'my.db': '', 'src/a.db': '' })
    linkSync(path.join(sandbox.home, 'kiki.db'), path.join(sandbox.root, 'src/twin.db'))
    const { body, text } = await glob({ pattern: '**/*.db', hidden: true, ignored: true })
    expect(body.toSorted()).toEqual(['my.db', 'src/a.db'])
    expect(text).toContain("Kiki's own home")
    for (const args of [{ pattern: '.kiki/*' }, { pattern: '*', path: '.kiki' }, { pattern: `${sandbox.home}/*` }]) {
      expect((await refusal(() => glob(args))).code).toBe('path_denied')
    }
  })

  it('PA-02 SR-03 links are not followed out', async () => {
    writeFileSync(path.join(sandbox.out, 'secret.txt'), '')
    symlinkSync(sandbox.out, path.join(sandbox.root, 'out'))
    expect(await names({ pattern: '**/*', hidden: true, ignored: true })).toEqual([])
    expect((await refusal(() => glob({ pattern: 'out/*' }))).code).toBe('path_denied')
  })
})
