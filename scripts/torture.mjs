// npm run torture [-- --only kill,calls,vanish,rows,fuzz] [--kills 1000] [--worlds 2] [--minutes N] [--seed N] [--write]
// The long runs behind docs/reliability.md. Ends with 1 when anything is not as promised. --write puts the figures there.
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { runnerImport } from 'vite'

const root = fileURLToPath(new URL('..', import.meta.url))
const PARTS = { kill: 'kill-main', calls: 'calls-main', vanish: 'vanish-main', rows: 'rows-main', fuzz: 'fuzz-main' }
const { values } = parseArgs({
  options: {
    only: { type: 'string', default: Object.keys(PARTS).join(',') },
    kills: { type: 'string', default: '1000' },
    worlds: { type: 'string', default: '2' },
    minutes: { type: 'string', default: '120' },
    seed: { type: 'string', default: '1' },
    calls: { type: 'string', default: '100000' },
    cycles: { type: 'string', default: '10000' },
    rows: { type: 'string', default: '1000000' },
    inputs: { type: 'string', default: '100000' },
    write: { type: 'boolean', default: false },
  },
})
const numbers = Object.fromEntries(
  Object.entries(values)
    .filter(([, value]) => typeof value === 'string' && /^\d+$/.test(value))
    .map(([name, value]) => [name, Number(value)]),
)

for (const part of values.only.split(',')) {
  const file = PARTS[part]
  if (file === undefined) throw new Error(`There is no part "${part}"; there are ${Object.keys(PARTS).join(', ')}.`)
  console.log(`${part}:`)
  const { module } = await runnerImport(`${root}test/torture/${file}.ts`, {
    configFile: false,
    logLevel: 'error',
    root,
  })
  const { figures, faults } = await module.main({ ...numbers, say: (text) => console.log(`  ${text}`) })
  for (const [what, figure] of figures) console.log(`  ${what}: ${figure}`)
  for (const fault of faults.slice(0, 20)) console.error(`  FAULT ${fault}`)
  if (faults.length > 0) process.exitCode = 1
  if (values.write) write(part, figures, faults)
}

/** Replaces one part's table in docs/reliability.md. */
function write(part, figures, faults) {
  const file = `${root}docs/reliability.md`
  const command = `npm run torture -- --only ${part}`
  const machine = `${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown processor'}`
  const rows = [...figures, ['faults', faults.length]].map(([what, figure]) => `| ${what} | ${figure} |`)
  const table = [`\`${command}\` (${machine})`, '', '| what | figure |', '| --- | --- |', ...rows].join('\n')
  const text = readFileSync(file, 'utf8')
  const section = new RegExp(`(<!-- ${part} -->\n)[\\s\\S]*?(<!-- /${part} -->)`)
  if (!section.test(text)) throw new Error(`docs/reliability.md has no part "${part}".`)
  writeFileSync(
    file,
    text.replace(section, (_, open, close) => `${open}\n${table}\n\n${close}`),
  )
}
