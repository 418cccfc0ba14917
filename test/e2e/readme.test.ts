import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ERROR_CODES } from '../../src/lib/errors.js'
import { CATALOG } from '../../src/tools/catalog.js'
import { callApi } from '../helpers/host.js'
import { copySources, plainEnvironment, ROOT } from '../helpers/source-copy.js'

const README = read('README.md')
let base: string

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'kiki-readme-')))
})
afterAll(() => rmSync(base, { recursive: true, force: true }))

describe('the first screen', () => {
  it('PK-01 PK-06 it names the two commands, and they build, run and test', () => {
    const screen = README.split('\n').slice(0, 20).join('\n')
    expect(screen).toContain('npm ci && npm start')
    expect(screen).toContain('npm ci && npm test')
    const { scripts } = JSON.parse(read('package.json'))
    expect(scripts).toMatchObject({ prestart: 'npm run build', start: 'node dist/main.js start', test: 'vitest run' })
  })

  it('PK-01 npm start builds what is not built, runs the host, and prints where to go', async () => {
    const project = copySources(join(base, 'project'))
    const home = join(base, 'home-of-start')
    const child = spawn('npm', ['start'], {
      cwd: project,
      env: { ...plainEnvironment(), KIKI_HOME: home },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const exit = once(child, 'exit')
    let link = ''
    for await (const line of createInterface({ input: child.stdout })) {
      link = /http:\/\/127\.0\.0\.1:\d+\/#login=\S+/.exec(line)?.[0] ?? ''
      if (link !== '') break
    }
    const page = await fetch(link)
    expect(page.status).toBe(200)
    expect(await page.text()).toContain('<title>Kiki')
    await callApi(join(home, 'kiki.sock'), 'POST', '/api/stop')
    expect(await exit).toEqual([0, null])
  }, 120_000)
})

describe('first minutes', () => {
  it('PK-06 every command of the first minutes does what is said, in its order', () => {
    const home = join(base, 'person')
    mkdirSync(join(home, 'code', 'my-project'), { recursive: true })
    mkdirSync(join(home, 'bin'))
    writeFileSync(join(home, 'bin', 'kiki'), `#!/bin/sh\nexec "${process.execPath}" "${ROOT}dist/main.js" "$@"\n`)
    chmodSync(join(home, 'bin', 'kiki'), 0o755)
    const env = { ...plainEnvironment(), HOME: home, PATH: `${join(home, 'bin')}:${process.env.PATH}` }
    const shell = (script: string) => execFileSync('sh', ['-ec', script], { cwd: home, env, encoding: 'utf8' })
    const blocks = [...README.matchAll(/<!-- walk -->\n```sh\n([\s\S]*?)```/g)].map(([, script = '']) => script)
    expect(blocks.length).toBe(6)
    let said = shell('kiki start --background')
    try {
      let client = 'client_…'
      let session = 'ext_…'
      const outputs = blocks.map((block) => {
        const output = shell(block.replaceAll('client_…', client).replaceAll('ext_…', session))
        client = /client_[\w-]+/.exec(output)?.[0] ?? client
        session = /ext_[\w-]+/.exec(output)?.[0] ?? session
        return output
      })
      expect(outputs[0]).toContain('auto-edit')
      expect(outputs[1]).toContain(join(home, 'code', 'my-project'))
      const first = /ext_[\w-]+/.exec(outputs[1] ?? '')?.[0]
      expect(outputs[2]).toContain(`mcp --client ${client} --tools --home ${join(home, '.kiki')} --session ${first}`)
      expect(outputs[4]).toMatch(/ask: Edit asks you/)
      expect(outputs[5]).toMatch(/No operations[\s\S]*is paused[\s\S]*is active[\s\S]*is revoked/)
    } finally {
      said = shell('kiki stop')
    }
    expect(said).toContain('has stopped')
  })
})

describe('documents', () => {
  const documents = [...markdown('.'), ...markdown('docs')]

  it('PK-06 every document is there, and every link in them leads somewhere', () => {
    expect(documents).toEqual(
      expect.arrayContaining(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']),
    )
    const dead = documents.flatMap((document) =>
      [...read(document).matchAll(/\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
        .filter(([, path = '', anchor]) => {
          const target = path === '' ? document : join(dirname(document), path)
          if (!existsSync(join(ROOT, target))) return true
          return anchor !== undefined && !anchorsOf(read(target)).includes(anchor)
        })
        .map(([link]) => `${document}: ${link}`),
    )
    expect(dead).toEqual([])
  })

  it('PK-06 the tables are as the program is, and a table that is not is found', () => {
    const docs = (...args: string[]) =>
      execFileSync(process.execPath, [join(ROOT, 'scripts/docs.mjs'), ...args], { stdio: 'pipe' })
    docs('--check')
    const copy = join(base, 'documents')
    for (const document of documents) cpSync(join(ROOT, document), join(copy, document))
    docs('--check', copy)
    const changed = read('docs/errors.md').replace('| `timeout` | 504 |', '| `timeout` | 500 |')
    expect(changed).not.toBe(read('docs/errors.md'))
    writeFileSync(join(copy, 'docs/errors.md'), changed)
    expect(() => docs('--check', copy)).toThrow('Out of date: docs/errors.md')
  })

  it('PK-06 they tell of every tool and error', () => {
    for (const tool of CATALOG) expect(read('docs/tools.md')).toContain(`\n### ${tool.name}\n`)
    for (const code of ERROR_CODES) expect(read('docs/errors.md')).toContain(`| \`${code}\` |`)
  })

  it('PK-06 ARCHITECTURE.md tells of every folder of the code, and of none that is not there', () => {
    const told = [...read('ARCHITECTURE.md').matchAll(/^\| `([\w.]+)\/?` \| /gm)].map(([, name]) => name)
    const there = readdirSync(join(ROOT, 'src'))
    expect(told.filter((name) => name !== 'src').sort()).toEqual(there.sort())
  })

  it('PK-06 a setting that the code acts on is not said to have no effect', () => {
    const later = [...read('docs/config.md').matchAll(/### `\[+(\w+)[^\n]*\n\nRead and checked, but nothing/g)]
    expect(later.length).toBeGreaterThan(0)
    const code = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.startsWith('config/'))
      .map((file) => read(join('src', file)))
      .join('\n')
    const used = later
      .map(([, table]) => `config.${table}`)
      .filter((access) => new RegExp(`\\b${access}\\b`).test(code))
    expect(used).toEqual([])
  })
})

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

function markdown(folder: string): string[] {
  return readdirSync(join(ROOT, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => join(folder, name))
}

/** The anchors that headings get: lower case, white space to hyphens, signs left out. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, title = '']) =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
