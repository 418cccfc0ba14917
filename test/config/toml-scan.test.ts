import fc from 'fast-check'
import { parse, stringify } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { pathId, scanToml } from '../../src/config/toml-scan.js'

const TEXT = [
  '# a comment with "quotes" and [brackets]',
  'top = 1',
  'a."b c".d = "x # no comment" # a comment',
  '',
  '[[permission.rules]]',
  'decision = "deny"',
  "pattern = 'Bash([[x]])'",
  '[permission.rules.more]',
  'k = 1',
  '  [[ permission . "rules" ]]',
  'decision = "allow"',
  'long = """',
  '[not.a.table]',
  'nor = "a key" \\""" still',
  '"""""',
  'after = [ 1, # one',
  "  [2, 3], { x = 1, y.z = '}' }]",
  '[commands.classes]',
  'unknown = 1979-05-27 07:32:00',
].join('\r\n')

function placeOf(map: ReadonlyMap<string, number>, path: (string | number)[]): string {
  const at = map.get(pathId(path))
  if (at === undefined) return 'nowhere'
  const lines = TEXT.slice(0, at).split('\n')
  return `${lines.length}:${(lines.at(-1) ?? '').length + 1}`
}

describe('scanToml', () => {
  const scan = scanToml(TEXT)

  it.each([
    [['top'], '2:1', '2:7'],
    [['a'], '3:1', 'nowhere'],
    [['a', 'b c', 'd'], '3:1', '3:13'],
    [['permission', 'rules'], '5:3', 'nowhere'],
    [['permission', 'rules', 0], '5:3', 'nowhere'],
    [['permission', 'rules', 0, 'pattern'], '7:1', '7:11'],
    [['permission', 'rules', 0, 'more', 'k'], '9:1', '9:5'],
    [['permission', 'rules', 1], '10:6', 'nowhere'],
    [['permission', 'rules', 1, 'decision'], '11:1', '11:12'],
    [['permission', 'rules', 1, 'long'], '12:1', '12:8'],
    [['permission', 'rules', 1, 'after', 1, 0], 'nowhere', '17:4'],
    [['permission', 'rules', 1, 'after', 2, 'y', 'z'], '17:20', '17:26'],
    [['commands', 'classes', 'unknown'], '19:1', '19:11'],
    [['not'], 'nowhere', 'nowhere'],
    [['nor'], 'nowhere', 'nowhere'],
  ])('CF-02 finds %j', (path, key, value) => {
    expect([placeOf(scan.keys, path), placeOf(scan.values, path)]).toEqual([key, value])
  })

  it('CF-02 knows every key of any document that the parser accepts', () => {
    expect(() => parse(TEXT)).not.toThrow()
    const name = fc
      .string({ unit: 'binary', maxLength: 6 })
      .filter((text) => text !== '__proto__' && text !== 'constructor')
    const leaf = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.double({ noNaN: true }))
    const { tree } = fc.letrec((tie) => ({
      tree: fc.dictionary(name, tie('node'), { maxKeys: 4 }),
      node: fc.oneof(
        { maxDepth: 4 },
        leaf,
        fc.array(leaf, { maxLength: 3 }),
        fc.array(fc.dictionary(name, leaf, { maxKeys: 3 }), { maxLength: 3 }),
        tie('tree'),
      ),
    }))
    fc.assert(
      fc.property(tree, (document) => {
        const text = stringify(document as Record<string, unknown>)
        const found = scanToml(text)
        for (const path of paths(parse(text))) {
          if (typeof path.at(-1) === 'string')
            expect(found.keys.has(pathId(path)), `${text}\n${pathId(path)}`).toBe(true)
        }
      }),
      { numRuns: 300 },
    )
  })

  it('CF-02 ends on text that is not TOML, however long', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'[]{}="\'#,.\\\n ab1'), maxLength: 60 }), (text) => {
        scanToml(text)
      }),
      { numRuns: 3_000 },
    )
    for (const part of ['[', '"', '"""', '{a=', '#', ' ', '\n', 'a', '\\', '"\\', 'a.', "'", '[[a]]\n', 'a="""\\"""']) {
      scanToml(part.repeat(60_000))
      scanToml(`a = ${part.repeat(60_000)}`)
      scanToml(`a = "${part.repeat(60_000)}`)
    }
  })
})

function paths(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null || value instanceof Date) return []
  return Object.entries(value).flatMap(([name, below]) => {
    const here = [...path, Array.isArray(value) ? Number(name) : name]
    return [here, ...paths(below, here)]
  })
}
