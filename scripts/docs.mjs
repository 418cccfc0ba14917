// The tables of the documents, made from the built program. Between `<!-- made: NAME -->` and `<!-- end -->` of a
// document nothing is written by hand. `node scripts/docs.mjs` writes them (build first: `npm run docs` does both);
// `--check` only says which documents are out of date, and fails where one is. A folder may be named instead of the project.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { clientsTable } from './docs/clients.mjs'
import { commandPages } from './docs/commands.mjs'
import { configTables } from './docs/config.mjs'
import { errorTable } from './docs/errors.mjs'
import { routeTables } from './docs/owner-api.mjs'
import { controlTools, nativeTools } from './docs/tools.mjs'

const PARTS = {
  clients: clientsTable,
  commands: commandPages,
  config: configTables,
  errors: errorTable,
  'native-tools': nativeTools,
  'control-tools': controlTools,
  routes: routeTables,
}

const { values, positionals } = parseArgs({ options: { check: { type: 'boolean' } }, allowPositionals: true })
const root = positionals[0] ?? fileURLToPath(new URL('..', import.meta.url))
const made = new Set()
const stale = documents(root).filter((file) => update(file, values.check === true))

const unused = Object.keys(PARTS).filter((name) => !made.has(name))
if (unused.length > 0) complain(`No document has a place for: ${unused.join(', ')}.`)
const names = stale.map((file) => relative(root, file)).join(', ')
if (values.check && stale.length > 0)
  complain(`Out of date: ${names}. Run \`npm run docs\` and commit what it changes.`)
else if (stale.length > 0) console.log(`Written: ${names}.`)
else console.log('Every table is as the program is.')

/** The Markdown files at the top and in `docs/`. */
function documents(folder) {
  const inFolder = (path) =>
    readdirSync(path)
      .filter((name) => name.endsWith('.md'))
      .map((name) => join(path, name))
  return [...inFolder(folder), ...inFolder(join(folder, 'docs'))]
}

/** Whether a document was out of date; unless `check`, it is then written. */
function update(file, check) {
  const before = readFileSync(file, 'utf8')
  const after = before.replace(/(<!-- made: ([\w-]+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, begin, name, end) => {
    const part = PARTS[name]
    if (part === undefined) throw new Error(`${file} asks for a part that nobody makes: ${name}`)
    made.add(name)
    return `${begin}\n${part()}\n\n${end}`
  })
  if (after === before) return false
  if (!check) writeFileSync(file, after)
  return true
}

function complain(text) {
  console.error(text)
  process.exitCode = 1
}
