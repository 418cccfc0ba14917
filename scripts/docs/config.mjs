import { readFileSync } from 'node:fs'
import { allLeaves, variableOf } from '../../dist/config/keys.js'
import { code, table } from './markdown.mjs'

/** Keys that are read and checked, but that nothing in this version acts on. Remove each with the work that uses it. */
export const NOT_YET = ['mcp', 'profiles.*.model']

/** A table for each table of `config.toml`, in the order and the words of config.example.toml. */
export function configTables() {
  const sections = readExample(readFileSync(new URL('../../config.example.toml', import.meta.url), 'utf8'))
  const leaves = new Map(allLeaves().map((leaf) => [leaf.key, leaf]))
  const told = new Set([...sections].flatMap(([section, rows]) => rows.map(({ name }) => `${section}.${name}`)))
  const untold = [...leaves.keys()].filter((key) => key !== 'permission.rules' && !told.has(key))
  if (untold.length > 0) throw new Error(`config.example.toml does not tell of ${untold.join(', ')}.`)
  return [...sections]
    .filter(([, rows]) => rows.length > 0)
    .map(([section, rows]) => sectionTable(section, rows, leaves))
    .join('\n\n')
}

function sectionTable(section, rows, leaves) {
  const lines = rows.map(({ name, value, words }) => {
    const leaf = leaves.get(`${section}.${name}`)
    if (leaf === undefined) throw new Error(`config.example.toml tells of ${section}.${name}, which does not exist.`)
    const variable = leaf.list || leaf.path.includes('*') ? '' : code(variableOf(leaf))
    const later = isLater(leaf.key) && !isLater(section) ? ' *(no effect yet)*' : ''
    return [code(name), value === undefined ? '' : code(value), variable, `${words}${later}`.trim()]
  })
  const head = section === 'permission.rules.*' ? '[[permission.rules]]' : `[${section.replace('*', 'NAME')}]`
  return [
    `### ${code(head)}`,
    ...(isLater(section) ? ['Read and checked, but nothing in this version acts on it yet.'] : []),
    table(['key', 'default', 'variable', 'meaning'], lines),
  ].join('\n\n')
}

function isLater(key) {
  return NOT_YET.some((later) => key === later || key.startsWith(`${later}.`))
}

/**
 * The example's keys by table, each with its default and its words: the comment beside it, else the last one above it.
 * A key that is commented out has no default. Its one profile and its rules stand for any.
 */
function readExample(example) {
  const sections = new Map()
  let rows = []
  let words = ''
  let begun = false
  for (const line of example.split('\n')) {
    const head = /^#?\[\[?([\w.]+)\]\]?/.exec(line)
    const key = /^(#?)(\w+) = (.*)$/.exec(line)
    const comment = /^# (.*)$/.exec(line)
    if (head) {
      const name = head[1].replace('profiles.review', 'profiles.*').replace('permission.rules', 'permission.rules.*')
      rows = sections.get(name) ?? []
      sections.set(name, rows)
      words = ''
    } else if (key) {
      const [, off, name, rest] = key
      const [value, beside] = rest.split(/\s+#\s/)
      const row = { name, value: off ? undefined : value, words: beside ?? words }
      if (!rows.some((other) => other.name === name)) rows.push(row)
      begun = false
    } else if (comment) {
      words = begun ? `${words} ${comment[1]}` : comment[1]
      begun = true
    }
  }
  return sections
}
