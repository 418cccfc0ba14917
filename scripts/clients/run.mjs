// Runs one real client against a real Kiki host and a scripted model; see README.md.
import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { CLIENTS, programOf } from './clients.mjs'
import { CHANGED, startKiki } from './kiki.mjs'
import { startStandIn } from './stand-in.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** Folder in which the client's package is installed. */
    in: { type: 'string' },
    /** edit, resume (no --session), refused, slow; see stepsOf. */
    scenario: { type: 'string', default: 'edit' },
    /** Log the traffic of the bridge. */
    tee: { type: 'boolean', default: false },
    /** Milliseconds by which the tee holds back each answer to a call, and the first message. */
    hold: { type: 'string', default: '0' },
    start: { type: 'string', default: '0' },
    /** JSON that is merged into Kiki's entry in the client's settings. */
    entry: { type: 'string' },
    /** Do not grant Kiki's tools in the client. */
    ask: { type: 'boolean', default: false },
    /** Seconds for the client's turn. */
    limit: { type: 'string', default: '120' },
    /** Further arguments for the client, one a flag. */
    with: { type: 'string', multiple: true, default: [] },
  },
})
const name = positionals[0]
const client = CLIENTS[name]
if (client === undefined || values.in === undefined) {
  console.error(
    `usage: node run.mjs ${Object.keys(CLIENTS).join('|')} --in FOLDER [--scenario edit|resume|refused|slow] [--tee [--hold MS] [--start MS]] [--entry JSON] [--ask]`,
  )
  process.exit(2)
}

const base = mkdtempSync(join(tmpdir(), `kiki-${name}-`))
const userHome = join(base, 'user')
mkdirSync(userHome)
const host = startKiki(base)
const modelLog = join(base, 'model.jsonl')
const model = await startStandIn({ steps: stepsOf(values.scenario), answer: 'The work is done.', log: modelLog })
const env = { PATH: process.env.PATH, HOME: userHome, TERM: 'dumb', ...client.env(model.url) }
const binary = programOf(name, values.in)

/** The client's process group that runs now. */
let running
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    if (running !== undefined) process.kill(-running, 'SIGKILL')
    host.stop()
    process.exit(1)
  })
}

try {
  configure()
  const listed = await runClient(client.list, 60)
  const turn = await runClient(
    [...client.run(model.url, !values.ask), ...values.with, 'Change the second line.'],
    Number(values.limit),
  )
  report(listed, turn)
} finally {
  model.close()
  host.stop()
}

/** What the model is to do. Without `--session` every call names the session, as Kiki's instructions ask. */
function stepsOf(scenario) {
  const control = scenario === 'resume' ? { session_ref: host.session } : {}
  const keyed = { _kiki: { ...control, idempotency_key: `try-${scenario}` } }
  const read = { tool: 'Read', args: { path: 'a.txt', _kiki: control } }
  const edit = { tool: 'Edit', args: { path: 'a.txt', old_string: 'second line', new_string: '2nd line', ...keyed } }
  const list = { tool: 'kiki_session', args: { action: 'list' } }
  const resume = { tool: 'kiki_session', args: { action: 'resume', session_ref: host.session } }
  const scenarios = {
    // The same call with the same key again: answered from the record.
    edit: [read, edit, edit],
    resume: [list, resume, read, edit],
    refused: [{ tool: 'Read', args: { path: 'absent.txt' } }, edit],
    slow: [edit],
  }
  if (!(scenario in scenarios)) throw new Error(`no scenario ${scenario}: ${Object.keys(scenarios).join(', ')}`)
  return scenarios[scenario]
}

/** Applies what `kiki connect` prints: by the client's own command where there is one, else into its settings file. */
function configure() {
  const session = values.scenario === 'resume' ? [] : ['--session', host.session]
  const printed = withTee(host.kiki('connect', name, '--client', host.connection, ...session))
  const file = printed.file.replace(process.env.HOME, userHome)
  mkdirSync(dirname(file), { recursive: true })
  if (printed.command) {
    const [, ...args] = printed.command
    const done = spawnSync(binary, args, { env, cwd: host.workspace, encoding: 'utf8', timeout: 60_000 })
    if (done.status !== 0) throw new Error(`${args.join(' ')}: ${done.status} ${done.stdout} ${done.stderr}`)
    if (!existsSync(file)) throw new Error(`${name} did not write ${file}: ${done.stdout} ${done.stderr}`)
  } else writeFileSync(file, JSON.stringify(printed.config))
  if (file.endsWith('.toml')) return
  const settings = { ...JSON.parse(readFileSync(file, 'utf8')), ...client.settings?.(model.url) }
  const servers = settings.mcpServers ?? settings.mcp
  Object.assign(servers.kiki, JSON.parse(values.entry ?? '{}'))
  writeFileSync(file, JSON.stringify(settings, null, 2))
}

/** Puts the tee before the bridge's own command, wherever it stands. */
function withTee(printed) {
  if (!values.tee) return printed
  const tee = [
    fileURLToPath(new URL('tee.mjs', import.meta.url)),
    join(base, 'bridge.jsonl'),
    values.hold,
    values.start,
    process.execPath,
  ]
  const main = /"([^"]*main\.js)"/.exec(JSON.stringify(printed.command ?? printed.config))?.[1]
  const before = JSON.stringify(main)
  return JSON.parse(
    JSON.stringify(printed).replaceAll(before, [...tee, main].map((word) => JSON.stringify(word)).join(',')),
  )
}

function runClient(args, seconds) {
  return new Promise((resolve) => {
    const started = performance.now()
    const child = spawn(binary, args, { env, cwd: host.workspace, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
    let output = ''
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      output += chunk
    })
    running = child.pid
    const timer = setTimeout(() => process.kill(-child.pid, 'SIGKILL'), seconds * 1000)
    child.on('close', (code, signal) => {
      clearTimeout(timer)
      running = undefined
      resolve({ code: code ?? signal, seconds: Math.round((performance.now() - started) / 100) / 10, output })
    })
  })
}

function report(listed, turn) {
  const operations = host.operations()
  const facts = {
    folder: base,
    listed: listed.output.trim(),
    exit: turn.code,
    seconds: turn.seconds,
    file_changed: readFileSync(host.file, 'utf8') === CHANGED,
    operations: operations.map((row) => ({
      tool: row.tool,
      status: row.status,
      key: row.key ?? row.idempotency_key,
      client: row.client,
    })),
  }
  writeFileSync(join(base, 'output.txt'), turn.output)
  console.log(JSON.stringify(facts, null, 2))
}
