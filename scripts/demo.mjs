// A short true story: a real MCP client over the real bridge, in a home and a workspace that exist only for it.
// Every step is checked; the exit code tells whether all of them came out as told. `npm run demo` builds first.
import { execFile, spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { MENU, PRICE, STORIES } from './demo/files.mjs'
import { createTeller } from './demo/teller.mjs'

/** The story takes a few seconds; where it hangs it is ended after this many milliseconds. */
const LONGEST_MS = 25_000
const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url))
const run = promisify(execFile)
const { say, step, tell, quote, fail } = createTeller()

await main().catch(fail)

/** A folder that is made and removed, and a host that is stopped, however the story ends. */
async function main() {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'kiki-demo-')))
  const over = new AbortController()
  const open = {}
  try {
    await Promise.race([story(base, open), tooLate(over.signal)])
  } finally {
    over.abort()
    open.watcher?.kill()
    await open.client?.close()
    await open.operator?.close()
    await kikiIn(base)('stop')
    await rm(base, { recursive: true, force: true })
  }
}

async function tooLate(signal) {
  await setTimeout(LONGEST_MS, undefined, { signal })
  throw new Error(`It took longer than ${LONGEST_MS / 1000} s.`)
}

async function story(base, open) {
  const workspace = join(base, 'cafe')
  const kiki = kikiIn(base)
  const owner = async (...args) => JSON.parse(await kiki(...args, '--json'))
  say('You are the owner of this machine, and a small MCP client plays the assistant.')
  await makeRepository(workspace)
  await openTheHouse(owner, join(base, 'home'))
  const connection = await grant(owner)
  const session = await bind(owner, connection, workspace)
  const assistant = await connect(connection, join(base, 'home'))
  open.client = assistant.client
  await meet(assistant.client, session)
  await look(assistant.client, session)
  await change(assistant.client, session, workspace)
  await repeat(assistant.client, session, workspace)
  await stayInside(assistant.client, session)
  await record(owner, session)
  const asked = await beAsked(assistant.client, owner, connection, workspace, open)
  await takeBack(owner, asked, workspace)
  await runCommands(owner, join(base, 'home'), workspace, open)
  await revoke(assistant, owner, connection, session, workspace)
  say('\nThat was all of it: granted, asked about, recorded, at most once, and over when you said so.')
}

function kikiIn(base) {
  return async (...args) => {
    const { stdout } = await run(process.execPath, [MAIN, ...args, '--home', join(base, 'home')], {
      timeout: LONGEST_MS,
    })
    return stdout
  }
}

async function makeRepository(workspace) {
  step('A small project to work on', 'a café, kept in git like any other project')
  await mkdir(workspace)
  for (const [name, text] of Object.entries({ 'menu.md': MENU, 'stories.md': STORIES })) {
    await writeFile(join(workspace, name), text)
  }
  const git = (...args) =>
    run('git', ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.org', ...args], gitIn(workspace))
  await git('init', '--quiet')
  await git('add', '.')
  await git('commit', '--quiet', '--message', 'Open the café')
  tell('2 files, 1 commit')
}

async function openTheHouse(owner, home) {
  step('You start the host', 'kiki start --background')
  const started = await owner('start', '--background')
  check(started.home === home, 'the host uses the home that it was given')
  tell(`it runs as process ${started.pid}; its settings page is ${started.owner_url}, for you alone`)
}

async function grant(owner) {
  step('You authorise one client', 'kiki connections add --name "Demo assistant" --preset editor')
  const made = await owner('connections', 'add', '--name', 'Demo assistant', '--preset', 'editor')
  check(made.ceiling === 'auto-edit' && made.allow_commands === false, 'an editor changes files and runs no commands')
  tell('it may read, search and change files; it may run no commands')
  return made.id
}

async function bind(owner, connection, workspace) {
  step('You give it one folder', 'kiki sessions create --connection … --workspace ./cafe')
  const made = await owner(
    'sessions',
    'create',
    '--connection',
    connection,
    '--workspace',
    workspace,
    '--title',
    'Café',
  )
  check(made.workspace === workspace, 'the session is bound to that folder')
  tell('this session works in ./cafe and nowhere else')
  return made.session_ref
}

/** A client over a bridge of its own; `lastWords` resolves to what the bridge wrote to stderr, once it has ended. */
async function connect(connection, home) {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [MAIN, 'mcp', '--client', connection, '--tools', '--home', home],
    stderr: 'pipe',
  })
  const lastWords = text(transport.stderr)
  const client = new Client({ name: 'kiki-demo', version: '1.0.0' })
  await client.connect(transport)
  return { client, lastWords }
}

async function meet(client, session) {
  step('The assistant connects and looks around', 'tools/list, then kiki_session list')
  const before = await toolNames(client)
  check(before.join() === 'kiki_session,kiki_operation,kiki_save_text', 'only the control tools are there')
  tell(`it sees ${before.length} tools, and none of them touches your machine`)
  const listed = await call(client, 'kiki_session', { action: 'list' })
  check(listed.structuredContent?.sessions?.[0]?.session_ref === session, 'the session is offered')
  tell('it finds the one session that you made for it')

  step('It resumes that session', 'kiki_session resume')
  await call(client, 'kiki_session', { action: 'resume', session_ref: session })
  const after = await toolNames(client)
  check(after.includes('Read') && after.includes('Edit') && !after.includes('Bash'), 'the granted tools are there')
  tell(`now it has ${after.slice(before.length).join(', ')}`)
}

async function look(client, session) {
  step('It reads', 'Read menu.md')
  const read = textOf(await call(client, 'Read', { path: 'menu.md', _kiki: { session_ref: session } }))
  check(read.includes('\tTea, green: 3.20'), 'the line is read as it stands')
  quote(read)

  step('It searches', 'Grep "tea" in every file')
  const found = textOf(
    await call(client, 'Grep', { pattern: 'tea', case_insensitive: true, _kiki: { session_ref: session } }),
  )
  check(found.includes('menu.md') && found.includes('stories.md'), 'both files are found')
  quote(found)
}

async function change(client, session, workspace) {
  step('It changes one line, under a key', 'Edit menu.md, idempotency_key "raise-the-tea"')
  const result = await call(client, 'Edit', {
    ...PRICE,
    _kiki: { session_ref: session, idempotency_key: 'raise-the-tea' },
  })
  check(result._meta?.['kiki/operation']?.status === 'completed', 'the edit is completed')
  const { stdout } = await run('git', ['diff', '--unified=0', '--no-color'], gitIn(workspace))
  check(stdout.includes('-Tea, green: 3.20') && stdout.includes('+Tea, green: 3.50'), 'git sees exactly that change')
  tell('git agrees:')
  quote(
    stdout
      .split('\n')
      .filter((line) => /^[-+][^-+]/.test(line))
      .join('\n'),
  )
}

async function repeat(client, session, workspace) {
  step('The answer got lost, so it asks again', 'the same Edit with the same key')
  const before = await readFile(join(workspace, 'menu.md'), 'utf8')
  const again = await call(client, 'Edit', {
    ...PRICE,
    _kiki: { session_ref: session, idempotency_key: 'raise-the-tea' },
  })
  check(again._meta?.['kiki/operation']?.replayed === true, 'the saved answer is given again')
  check((await readFile(join(workspace, 'menu.md'), 'utf8')) === before, 'the file is as it was')
  tell('nothing ran: it got the saved answer of the first call')

  step('It uses that key for something else', 'another Edit with the same key')
  const other = { ...PRICE, old_string: 'Cake: 4.00', new_string: 'Cake: 9.00' }
  const words = await refusal(
    client,
    'Edit',
    { ...other, _kiki: { session_ref: session, idempotency_key: 'raise-the-tea' } },
    'idempotency_conflict',
  )
  check((await readFile(join(workspace, 'menu.md'), 'utf8')) === before, 'the cake still costs 4.00')
  tell('refused, and the cake still costs 4.00:')
  quote(words)
}

async function stayInside(client, session) {
  step('It tries a file outside of its folder', 'Read ../home/owner.token')
  quote(await refusal(client, 'Read', { path: '../home/owner.token', _kiki: { session_ref: session } }, 'path_denied'))
}

/** A session in which the owner is asked about every change, and a terminal in which the owner answers. */
async function beAsked(client, owner, connection, workspace, open) {
  step('You want to be asked from now on', 'kiki sessions create … --mode manual')
  const made = await owner(
    'sessions',
    'create',
    '--connection',
    connection,
    '--workspace',
    workspace,
    '--mode',
    'manual',
  )
  const session = made.session_ref
  const edit = (key, fields) =>
    client.callTool({ name: 'Edit', arguments: { ...fields, _kiki: { session_ref: session, idempotency_key: key } } })
  const cake = { path: 'menu.md', old_string: 'Cake: 4.00', new_string: 'Cake: 4.20' }
  const alone = await edit('cake-alone', cake)
  check(alone._meta?.['kiki/error']?.code === 'approval_unavailable', 'nobody can be asked yet')
  tell('nobody is there to be asked, so its change is refused at once; nothing waits')

  step('You open a terminal for it', 'kiki approvals watch')
  const home = join(workspace, '..', 'home')
  open.watcher = spawn(process.execPath, [MAIN, 'approvals', 'watch', '--json', '--home', home], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: open.watcher.stdout })[Symbol.asyncIterator]()
  const next = async (event) => {
    for (;;) {
      const { value, done } = await lines.next()
      check(!done, 'the watcher goes on')
      const told = JSON.parse(value)
      if (told.event === event) return told.approval ?? told
    }
  }
  await next('connected')
  const waiting = edit('cake', cake)
  const question = await next('asked')
  check(
    question.preview.includes('-Cake: 4.00') && question.preview.includes('+Cake: 4.20'),
    'you see what would change',
  )
  tell('the same change under a new key waits, and you see what it would do:')
  quote(question.preview)

  step('You approve it, once', 'approve ID')
  open.watcher.stdin.write(`approve ${question.id}\n`)
  const done = await waiting
  check(done._meta?.['kiki/operation']?.status === 'completed', 'the approved change is made')
  check((await readFile(join(workspace, 'menu.md'), 'utf8')).includes('Cake: 4.20'), 'the cake costs 4.20')
  tell('it ran, once: the cake costs 4.20')

  step('You deny another, with a word to the assistant', 'deny ID Coffee stays at 2.80.')
  const dear = edit('coffee', { path: 'menu.md', old_string: 'Coffee: 2.80', new_string: 'Coffee: 9.80' })
  open.watcher.stdin.write(`deny ${(await next('asked')).id} Coffee stays at 2.80.\n`)
  const denied = await dear
  check(denied._meta?.['kiki/error']?.code === 'approval_denied', 'the change is denied')
  check((await readFile(join(workspace, 'menu.md'), 'utf8')).includes('Coffee: 2.80'), 'the coffee costs 2.80')
  tell('nothing ran, and the assistant reads:')
  quote(textOf(denied))
  const { entries } = await owner('audit', '--session', session)
  check(
    entries.some((one) => one.error_code === 'approval_denied'),
    'the audit log tells of the denial',
  )
  return session
}

async function record(owner, session) {
  step('You look at the record', 'kiki operations list')
  const { operations } = await owner('operations', 'list', '--session', session)
  const edits = operations.filter((one) => one.tool === 'Edit')
  check(edits.length === 1 && edits[0].status === 'completed', 'three requests to edit, one edit on the record')
  quote(
    operations
      .map((one) => `${one.tool.padEnd(5)} ${one.status}`)
      .reverse()
      .join('\n'),
  )
}

async function takeBack(owner, session, workspace) {
  step('You change your mind about the cake', 'kiki undo ext_…')
  const done = await owner('undo', session)
  const menu = await readFile(join(workspace, 'menu.md'), 'utf8')
  check(menu.includes('Cake: 4.00') && menu.includes('Tea, green: 3.50'), 'the cake costs what it did, the tea stays')
  check(done.undone.length === 1, 'one change is taken back')
  tell('what that session changed is taken back: the cake costs 4.00 again')
}

/** Commands: another connection, which may run them. Confined where a sandbox works; the story says which it was. */
async function runCommands(owner, home, workspace, open) {
  step('Another assistant may run commands', 'kiki connections add --preset operator …')
  const options = ['--preset', 'operator', '--ceiling', 'full', '--sandbox', 'preferred']
  const made = await owner('connections', 'add', '--name', 'Demo operator', ...options)
  const { session_ref: session } = await owner('sessions', 'create', '--connection', made.id, '--workspace', workspace)
  const { client } = await connect(made.id, home)
  open.operator = client
  tell(`its commands run ${made.commands}`)
  let last = 0
  const use = (name, args) =>
    call(client, name, { ...args, _kiki: { session_ref: session, idempotency_key: `command-${++last}` } })

  step('It runs a command', 'Bash wc -l *.md')
  const counted = await use('Bash', { command: 'wc -l *.md' })
  check(counted._meta?.['kiki/result']?.exit_code === 0 && textOf(counted).includes('menu.md'), 'the command has run')
  quote(textOf(counted))

  step('It starts a server, and asks it', 'Bash in the background, then another Bash')
  const server =
    "require('node:http').createServer((q, s) => s.end('Welcome')).listen(0, '127.0.0.1', function () { console.log('open on port', this.address().port) })"
  const started = await use('Bash', { command: `node -e "${server}"`, background: true })
  const { process_id } = started._meta['kiki/result']
  let output = ''
  for (let cursor = 0; !output.includes('port'); ) {
    const page = (await use('ProcessOutput', { process_id, cursor, wait_ms: 5000 }))._meta['kiki/result']
    check(page.status === 'running', 'the server runs')
    output += page.text
    cursor = page.cursor
  }
  const port = /port (\d+)/.exec(output)[1]
  const asked = await use('Bash', {
    command: `node -e "fetch('http://127.0.0.1:${port}/').then((r) => r.text()).then(console.log)"`,
  })
  check(textOf(asked).startsWith('Welcome'), 'the server answers the next command')
  tell('the server runs on, and answers the next command: Welcome')

  step('You see it, and end it', 'kiki processes stop …')
  const { processes } = await owner('processes', 'list')
  check(
    processes.some((one) => one.id === process_id && one.status === 'running'),
    'you see the server',
  )
  const stopped = await owner('processes', 'stop', process_id)
  check(stopped.status === 'ended', 'the server is ended')
  tell('it is ended, with everything that it had started')
}

async function revoke({ client, lastWords }, owner, connection, session, workspace) {
  step('You have seen enough', 'kiki connections revoke …')
  const before = await readFile(join(workspace, 'menu.md'), 'utf8')
  const now = await owner('connections', 'revoke', connection)
  check(now.status === 'revoked', 'the connection is revoked')
  const free = { ...PRICE, old_string: PRICE.new_string, new_string: 'Tea, green: 0.00' }
  const _kiki = { session_ref: session, idempotency_key: 'one-last-time' }
  const answer = await client.callTool({ name: 'Edit', arguments: { ...free, _kiki } }).catch((error) => error)
  check(answer instanceof Error || answer.isError === true, 'its next call is refused')
  const words = await lastWords
  check(words.includes('revoked'), `the bridge says why it ended (it said: ${words})`)
  check((await readFile(join(workspace, 'menu.md'), 'utf8')) === before, 'the file is as it was')
  tell('the next call of the assistant fails, its line is closed, and the tea still costs 3.50:')
  quote(words)
}

async function call(client, name, args) {
  const result = await client.callTool({ name, arguments: args })
  check(result.isError !== true, `${name} succeeds: ${textOf(result)}`)
  return result
}

async function refusal(client, name, args, code) {
  const result = await client.callTool({ name, arguments: args })
  const got = result._meta?.['kiki/error']?.code
  check(result.isError === true && got === code, `${name} is refused as ${code} (got ${got}: ${textOf(result)})`)
  return textOf(result)
}

async function toolNames(client) {
  return (await client.listTools()).tools.map((tool) => tool.name)
}

function textOf(result) {
  return result.content.map((block) => block.text ?? '').join('\n')
}

/** Git as on a machine without settings of its own, so that the story is the same everywhere. */
function gitIn(cwd) {
  return { cwd, env: { ...process.env, GIT_CONFIG_GLOBAL: '/dev/null', GIT_CONFIG_NOSYSTEM: '1' } }
}

function check(held, what) {
  if (!held) throw new Error(`This did not come out as told: ${what}.`)
}
