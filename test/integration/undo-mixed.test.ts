import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { connectClient, type TestClient, textOf } from '../helpers/clients.js'
import { startHost, type TestHost } from '../helpers/host.js'
import { kikiJson } from '../helpers/run-kiki.js'

let host: TestHost
let connection: string
let client: TestClient

beforeAll(async () => {
  host = await startHost()
  connection = await host.connection()
  client = await connectClient(host, connection, 'v2 auto', { args: ['--no-start'] })
})
afterAll(async () => {
  await client.close()
  await host.stop()
})

const at = (name: string) => join(host.workspace, name)

/** Everything that undo has to bring back: kind, mode, bytes or target, and which names are one file. */
function snapshot(): Record<string, string> {
  const names = readdirSync(host.workspace, { recursive: true, encoding: 'utf8' }).sort()
  const firstName = new Map<string, string>()
  return Object.fromEntries(
    names.map((name) => {
      const stat = lstatSync(at(name))
      const mode = (stat.mode & 0o7777).toString(8)
      if (stat.isSymbolicLink()) return [name, `link to ${readlinkSync(at(name))}`]
      if (stat.isDirectory()) return [name, `folder ${mode}`]
      const same = firstName.get(`${stat.ino}`) ?? name
      firstName.set(`${stat.ino}`, same)
      return [name, `file ${mode} ${same} ${readFileSync(at(name)).toString('base64')}`]
    }),
  )
}

function prepare(): void {
  mkdirSync(at('src/old'), { recursive: true })
  mkdirSync(at('private'))
  chmodSync(at('private'), 0o750)
  const files: [name: string, content: string | Buffer, mode: number][] = [
    ['src/crlf.txt', 'one\r\ntwo\r\nthree\r\n', 0o644],
    ['src/bom.txt', '\ufeffone\ntwo\n', 0o600],
    ['src/wide.txt', Buffer.from('\ufeffone\r\ntwo\r\n', 'utf16le'), 0o664],
    ['src/run.sh', '#!/bin/sh\necho one\n', 0o755],
    ['src/plain.txt', 'one\ntwo\nthree', 0o640],
    ['src/old/a.txt', 'a\n', 0o604],
    ['src/old/b.bin', Buffer.from([0, 1, 2, 255]), 0o400],
    ['private/key', 'secret one\n', 0o600],
    ['shared', 'one\ntwo\n', 0o644],
  ]
  for (const [name, content, mode] of files) {
    writeFileSync(at(name), content)
    chmodSync(at(name), mode)
  }
  linkSync(at('shared'), at('src/hard'))
  linkSync(at('shared'), at('hard two'))
  symlinkSync('src/plain.txt', at('to plain'))
  symlinkSync('nowhere', at('src/old/dangling'))
}

const edit = (path: string, old_string: string, new_string: string) =>
  ['Edit', { path, old_string, new_string }] as const
const patch = (...lines: string[]) => ['ApplyPatch', { patch: `${lines.join('\n')}\n` }] as const
const rename = (from: string, to: string) => [`diff --git a/${from} b/${to}`, `rename from ${from}`, `rename to ${to}`]

/** Twenty changes; several files are changed more than once, by more than one name. */
const CHANGES: (readonly [tool: string, args: Record<string, unknown>])[] = [
  ['Write', { path: 'src/plain.txt', content: 'one\nTWO\nthree\nfour' }],
  edit('to plain', 'three', 'drei'),
  [
    'MultiEdit',
    {
      path: 'src/crlf.txt',
      edits: [
        { old_string: 'one\ntwo', new_string: '1\n2' },
        { old_string: 'three', new_string: '3' },
      ],
    },
  ],
  patch('--- a/src/crlf.txt', '+++ b/src/crlf.txt', '@@ -1,3 +1,4 @@', ' 1', '-2', '+zwei', '+more', ' 3'),
  patch(
    '*** Begin Patch',
    '*** Update File: src/wide.txt',
    '@@',
    '-one',
    '+eins',
    '*** Update File: src/bom.txt',
    '@@',
    ' one',
    '-two',
    '+zwei',
    '*** End Patch',
  ),
  patch(
    'diff --git a/src/run.sh b/src/run.sh',
    'old mode 100755',
    'new mode 100644',
    '--- a/src/run.sh',
    '+++ b/src/run.sh',
    '@@ -2 +2 @@',
    '-echo one',
    '+echo two',
  ),
  ['MakeDirectory', { path: 'made/deep' }],
  ['Move', { from: 'src/run.sh', to: 'made/deep/run' }],
  patch(
    ...rename('made/deep/run', 'bin/run'),
    '--- a/made/deep/run',
    '+++ b/bin/run',
    '@@ -1,2 +1,2 @@',
    ' #!/bin/sh',
    '-echo two',
    '+echo three',
  ),
  edit('src/hard', 'one', 'eins'),
  patch('--- a/shared', '+++ b/shared', '@@ -1,2 +1,2 @@', ' eins', '-two', '+zwei'),
  ['Delete', { path: 'src/hard' }],
  ['Delete', { path: 'src/old', recursive: true }],
  ['Write', { path: 'src/old', content: 'a file where the folder was' }],
  ['Move', { from: 'to plain', to: 'private/link' }],
  patch('*** Begin Patch', '*** Delete File: private/key', '*** Add File: private/key2', '+new', '*** End Patch'),
  ['Move', { from: 'private', to: 'hidden' }],
  patch(
    'diff --git a/tool b/tool',
    'new file mode 100755',
    '--- /dev/null',
    '+++ b/tool',
    '@@ -0,0 +1 @@',
    '+#!/bin/sh',
  ),
  edit('tool', '#!/bin/sh', '#!/bin/bash'),
  patch(
    '--- a/src/bom.txt',
    '+++ /dev/null',
    '@@ -1,2 +0,0 @@',
    '-one',
    '-zwei',
    ...rename('hard two', 'src/hard'),
    'old mode 100644',
    'new mode 100755',
  ),
]

it('FI-14 FI-10 FI-12 a session of twenty mixed changes is undone in one command, byte, mode and link exact, and done again', async () => {
  prepare()
  const before = snapshot()
  const session = await host.session(connection)
  expect(CHANGES).toHaveLength(20)
  for (const [index, [tool, args]] of CHANGES.entries()) {
    const way = { session_ref: session, idempotency_key: `change ${index}` }
    const result = await client.call(tool, { ...args, _kiki: way })
    expect(result.isError, `${index} ${tool}: ${textOf(result)}`).toBeFalsy()
  }
  const after = snapshot()
  expect(Object.keys(after).sort()).toEqual(
    [
      'bin',
      'bin/run',
      'hidden',
      'hidden/key2',
      'hidden/link',
      'made',
      'made/deep',
      'shared',
      'src',
      'src/crlf.txt',
      'src/hard',
      'src/old',
      'src/plain.txt',
      'src/wide.txt',
      'tool',
    ].sort(),
  )
  const undone = await kikiJson(host.home, ['undo', session])
  expect([undone.code, undone.value.error]).toEqual([0, undefined])
  expect(snapshot()).toEqual(before)
  const again = await kikiJson(host.home, ['undo', undone.value.operation_id])
  expect([again.code, again.value.error]).toEqual([0, undefined])
  expect(snapshot()).toEqual(after)
})

it('FI-10 OP-02 a patch with its key runs once; one whose last file can never be made changes nothing and says so', async () => {
  const session = await host.session(connection)
  writeFileSync(at('once'), 'one\n')
  const args = {
    patch: '--- a/once\n+++ b/once\n@@ -1 +1,2 @@\n one\n+two\n',
    _kiki: { session_ref: session, idempotency_key: 'p' },
  }
  await client.call('ApplyPatch', args)
  await client.call('ApplyPatch', args)
  expect(readFileSync(at('once'), 'utf8')).toBe('one\ntwo\n')
  // No file system takes so long a name.
  const name = 'n'.repeat(300)
  const failing = `--- a/once\n+++ b/once\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n--- /dev/null\n+++ b/x/${name}\n@@ -0,0 +1 @@\n+x\n`
  const result = await client.call('ApplyPatch', {
    patch: failing,
    _kiki: { session_ref: session, idempotency_key: 'q' },
  })
  expect(result.isError).toBe(true)
  expect(textOf(result)).toMatch(/[Nn]othing (was|is) changed/)
  expect([readFileSync(at('once'), 'utf8'), readdirSync(host.workspace).includes('x')]).toEqual(['one\ntwo\n', false])
})
