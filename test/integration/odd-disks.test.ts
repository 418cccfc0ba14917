import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { type CallResult, connectClient, meta, type TestClient, textOf } from '../helpers/clients.js'
import { fillUp } from '../helpers/disk.js'
import { startHost, type TestHost } from '../helpers/host.js'

/** Only the superuser may mount, and start a host as somebody else. */
const root = process.platform === 'linux' && process.getuid?.() === 0
const NOBODY = 65_534

const undoing: (() => unknown)[] = []
afterEach(async () => {
  for (const step of undoing.splice(0).reverse()) await step()
})

async function start(options: Parameters<typeof startHost>[0] = {}): Promise<TestHost> {
  const host = await startHost(options)
  undoing.push(() => host.stop())
  return host
}

async function clientOf(host: TestHost, workspace = host.workspace): Promise<TestClient & { ref: string }> {
  const id = await host.connection()
  const ref = await host.session(id, { workspace })
  const client = await connectClient(host, id, 'v1', { session: ref, args: ['--no-start'] })
  undoing.push(() => client.close())
  return { ...client, ref }
}

function mount(target: string, ...options: string[]): void {
  execFileSync('mount', [...options, target])
  undoing.push(() => {
    // Lazily: a test that failed may have left something open there.
    if (isMounted(target)) execFileSync('umount', ['-l', target])
  })
}
const isMounted = (path: string) =>
  readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${path.replaceAll(' ', '\\040')} `)
const tmpfs = (target: string, size = '256k') => mount(target, '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs')

let key = 0
const keyed = (args: object) => ({ ...args, _kiki: { idempotency_key: `k${++key}` } })
const codeOf = (result: CallResult) => meta<{ code: string } | undefined>(result, 'kiki/error')?.code
const leftovers = (folder: string) => readdirSync(folder).filter((name) => name.startsWith('.kiki-'))

describe.skipIf(!root)('what commands write, on a disk', () => {
  it('SH-01 GU-42 that is full is dropped with a word, and neither the command nor the host ends by it', async () => {
    const host = await start()
    tmpfs(join(host.home, 'output'), '1m')
    const id = await host.connection({ tools: ['shell'], allow_commands: true, sandbox: 'off' })
    const client = await connectClient(host, id, 'v1', { session: await host.session(id), args: ['--no-start'] })
    undoing.push(() => client.close())
    const much = await client.call('Bash', keyed({ command: 'seq 1000000; echo the end; exit 5' }))
    expect(meta<{ exit_code: number; truncated: boolean }>(much, 'kiki/result')).toMatchObject({
      exit_code: 5,
      truncated: true,
    })
    expect(textOf(much)).toMatch(/^1\n2\n3\n/)
    expect(textOf(much)).toMatch(/bytes of output were dropped here/)
    expect(textOf(await client.call('Bash', keyed({ command: 'echo goes on' })))).toMatch(/^goes on\n/)
  })
})

describe.skipIf(!root)('a workspace on a disk', () => {
  it('FI-06 FI-10 FI-12 FI-14 that is full keeps what it has, says so, and goes on once there is space', async () => {
    const host = await start()
    tmpfs(host.workspace)
    const at = (name: string) => join(host.workspace, name)
    writeFileSync(at('old'), 'old\n')
    writeFileSync(at('large'), 'x'.repeat(60_000))
    const client = await clientOf(host)
    fillUp(at('filler'))
    const refused = async (name: string, args: object) => {
      const result = await client.call(name, keyed(args))
      expect([name, codeOf(result), textOf(result)]).toEqual([
        name,
        'internal_error',
        expect.stringContaining('disk is full'),
      ])
      expect(leftovers(host.workspace)).toEqual([])
    }
    const long = 'y'.repeat(50_000)
    await refused('Write', { path: 'old', content: long })
    await refused('Write', { path: 'deep/new', content: long })
    await refused('Edit', { path: 'old', old_string: 'old', new_string: long })
    await refused('MultiEdit', { path: 'old', edits: [{ old_string: 'old', new_string: long }] })
    // A new name and mode need no space: both are there already when the last file fails, and are put back.
    const moved = 'diff --git a/old b/moved\nold mode 100644\nnew mode 100755\nrename from old\nrename to moved\n'
    await refused('ApplyPatch', { patch: `${moved}--- /dev/null\n+++ b/deep/new\n@@ -0,0 +1 @@\n+${long}\n` })
    expect(readFileSync(at('old'), 'utf8')).toBe('old\n')
    expect([statSync(at('old')).mode & 0o777, existsSync(at('moved'))]).toEqual([0o644, false])
    expect(existsSync(at('deep'))).toBe(false)

    // What is deleted is kept in the home, so that this works on a full disk too.
    expect(codeOf(await client.call('Delete', keyed({ path: 'large' })))).toBeUndefined()
    fillUp(at('filler'))
    await refused('Undo', {})
    expect(existsSync(at('large'))).toBe(false)
    rmSync(at('filler'))
    expect(codeOf(await client.call('Undo', keyed({})))).toBeUndefined()
    expect(readFileSync(at('large'), 'utf8')).toBe('x'.repeat(60_000))
    expect(codeOf(await client.call('Write', keyed({ path: 'deep/new', content: long })))).toBeUndefined()
  })

  it('FI-06 FI-12 FI-14 that is read-only is read as ever, and refuses every change as such', async () => {
    const host = await start()
    tmpfs(host.workspace)
    const at = (name: string) => join(host.workspace, name)
    mkdirSync(at('folder'))
    for (const name of ['a', 'folder/b']) writeFileSync(at(name), 'content\n')
    const client = await clientOf(host)
    expect(codeOf(await client.call('Write', keyed({ path: 'a', content: 'later\n' })))).toBeUndefined()
    execFileSync('mount', ['-o', 'remount,ro', host.workspace])
    expect(textOf(await client.call('Read', { path: 'a' }))).toContain('later')
    expect(textOf(await client.call('Grep', { pattern: 'content' }))).toContain('folder/b')
    expect(textOf(await client.call('Glob', { pattern: '**' }))).toContain('folder/b')
    for (const [name, args] of [
      ['Write', { path: 'a', content: 'x' }],
      ['Write', { path: 'new/file', content: 'x' }],
      ['Edit', { path: 'a', old_string: 'later', new_string: 'x' }],
      ['MultiEdit', { path: 'a', edits: [{ old_string: 'later', new_string: 'x' }] }],
      ['ApplyPatch', { patch: '--- a/a\n+++ b/a\n@@ -1 +1 @@\n-later\n+x\n' }],
      ['Delete', { path: 'a' }],
      ['Delete', { path: 'folder', recursive: true }],
      ['Move', { from: 'a', to: 'c' }],
      ['MakeDirectory', { path: 'made' }],
      ['Undo', {}],
    ] as const) {
      const result = await client.call(name, keyed(args))
      expect([name, codeOf(result), textOf(result)]).toEqual([
        name,
        'permission_denied',
        expect.stringContaining('read-only'),
      ])
    }
    expect(readFileSync(at('a'), 'utf8')).toBe('later\n')
    expect(readdirSync(host.workspace).sort()).toEqual(['a', 'folder'])
    execFileSync('mount', ['-o', 'remount,rw', host.workspace])
    expect(codeOf(await client.call('Undo', keyed({})))).toBeUndefined()
    expect(readFileSync(at('a'), 'utf8')).toBe('content\n')
  })

  it.each(['a disk', 'a bind mount'])(
    'SE-09 that was taken away (%s) is no other folder: nothing is read or written in its place',
    async (kind) => {
      const host = await start()
      const place = join(host.base, 'my disk')
      mkdirSync(place)
      writeFileSync(join(place, 'beneath'), 'beneath')
      const attach = () => (kind === 'a disk' ? tmpfs(place) : mount(place, '--bind', host.workspace))
      attach()
      const client = await clientOf(host, place)
      expect(codeOf(await client.call('Write', keyed({ path: 'f', content: 'on the disk' })))).toBeUndefined()
      execFileSync('umount', [place])
      const gone = async (one: TestClient) => {
        for (const [name, args] of [
          ['Read', { path: 'beneath' }],
          ['Write', keyed({ path: 'f', content: 'elsewhere' })],
          ['Delete', keyed({ path: 'beneath' })],
          ['Undo', keyed({})],
        ] as const) {
          const result = await one.call(name, args)
          expect([name, codeOf(result)]).toEqual([name, 'session_unavailable'])
          expect(textOf(result)).toContain('not mounted')
        }
        const list = await one.call('kiki_session', { action: 'list' })
        expect(textOf(list)).toContain('its folder is gone')
        expect(readdirSync(place)).toEqual(['beneath'])
      }
      await gone(client)
      await host.kill()
      await host.restart()
      await gone(client)
      attach()
      expect(codeOf(await client.call('Write', keyed({ path: 'g', content: 'back' })))).toBeUndefined()
      expect(readFileSync(join(place, 'g'), 'utf8')).toBe('back')
    },
  )

  it('FI-12 in which another is mounted is not emptied by the way: the deletion is refused before it begins', async () => {
    const host = await start()
    const inner = join(host.workspace, 'folder', 'inner')
    mkdirSync(inner, { recursive: true })
    writeFileSync(join(host.workspace, 'folder', 'a'), 'a')
    tmpfs(inner)
    writeFileSync(join(inner, 'b'), 'b')
    const client = await clientOf(host)
    for (const path of ['folder', 'folder/inner']) {
      const result = await client.call('Delete', keyed({ path, recursive: true }))
      expect([path, codeOf(result)]).toEqual([path, 'invalid_arguments'])
      expect(textOf(result)).toContain('nothing was removed')
    }
    expect(readdirSync(inner)).toEqual(['b'])
    expect(existsSync(join(host.workspace, 'folder', 'a'))).toBe(true)
    // Renamed it cannot be either, and that is said in words.
    const moved = await client.call('Move', keyed({ from: 'folder/inner', to: 'elsewhere' }))
    expect(codeOf(moved)).toMatch(/^(conflict|invalid_arguments)$/)
    expect(readdirSync(inner)).toEqual(['b'])
  })
})

describe.skipIf(!root)('a host that is not the superuser', () => {
  it('FI-12 FI-06 is refused what belongs to others, in words, and removes nothing of a folder that it could not bring back', async () => {
    const host = await start({ user: NOBODY })
    expect(statSync(join(host.home, 'kiki.db')).uid).toBe(NOBODY)
    const at = (...names: string[]) => join(host.workspace, ...names)
    const make = (path: string, mode: number, owner = 0) => {
      writeFileSync(path, 'secret\n')
      chmodSync(path, mode)
      chownSync(path, owner, owner)
    }
    for (const folder of ['mixed', 'mixed/a', 'mixed/z', 'shut', 'open']) {
      mkdirSync(at(folder))
      chownSync(at(folder), NOBODY, NOBODY)
    }
    make(at('theirs'), 0o600)
    make(at('shown'), 0o644)
    make(at('mixed', 'a', '1'), 0o600, NOBODY)
    make(at('mixed', 'z', '2'), 0o600)
    make(at('open', 'mine'), 0o600, NOBODY)
    make(at('shut', 'mine'), 0o600, NOBODY)
    chownSync(at('shut'), 0, 0)
    chmodSync(at('shut'), 0o755)
    const client = await clientOf(host)
    const refused = async (name: string, args: object) => {
      const result = await client.call(name, keyed(args))
      expect([name, args, codeOf(result)]).toEqual([name, args, 'permission_denied'])
      return textOf(result)
    }
    await refused('Read', { path: 'theirs' })
    await refused('Edit', { path: 'theirs', old_string: 'secret', new_string: 'x' })
    await refused('Write', { path: 'theirs', content: 'x' })
    await refused('Write', { path: 'shown', content: 'x' })
    await refused('Write', { path: 'shut/new', content: 'x' })
    await refused('Delete', { path: 'theirs' })
    await refused('Delete', { path: 'shut/mine' })
    await refused('Move', { from: 'shut/mine', to: 'moved' })
    await refused('MakeDirectory', { path: 'shut/made' })
    expect(await refused('Delete', { path: 'mixed', recursive: true })).toContain('nothing was removed')
    expect(await refused('Delete', { path: 'shut', recursive: true })).toContain('nothing was removed')
    expect([existsSync(at('mixed', 'a', '1')), existsSync(at('mixed', 'z', '2'))]).toEqual([true, true])
    expect(readFileSync(at('theirs'), 'utf8')).toBe('secret\n')
    expect(textOf(await client.call('Read', { path: 'shown' }))).toContain('secret')
    // A search says what it could not look into, and finds the rest.
    const found = textOf(await client.call('Grep', { pattern: 'secret' }))
    expect(found).toContain('open/mine')
    expect(found).not.toContain('theirs:')
    expect(found).toMatch(/could not be read|permission|not readable|skipped/i)
    expect(leftovers(host.workspace)).toEqual([])
    expect(codeOf(await client.call('Delete', keyed({ path: 'open', recursive: true })))).toBeUndefined()
    expect(codeOf(await client.call('Undo', keyed({})))).toBeUndefined()
    expect(readFileSync(at('open', 'mine'), 'utf8')).toBe('secret\n')
  })

  it('FI-12 FI-14 a deletion that fails in the middle says how far it came, and undo brings that back', async () => {
    const host = await start({ user: NOBODY })
    const folder = join(host.workspace, 'folder')
    const sticky = join(folder, 'z')
    mkdirSync(sticky, { recursive: true })
    for (const name of ['1', '2', '3']) writeFileSync(join(folder, name), name)
    writeFileSync(join(sticky, 'theirs'), 'theirs')
    chmodSync(join(sticky, 'theirs'), 0o644)
    for (const path of [folder, ...['1', '2', '3'].map((name) => join(folder, name))]) chownSync(path, NOBODY, NOBODY)
    // In a folder such as /tmp everyone may write, but remove only what is their own: that shows at the attempt only.
    chmodSync(sticky, 0o1777)
    const client = await clientOf(host)
    const result = await client.call('Delete', keyed({ path: 'folder', recursive: true }))
    expect(codeOf(result)).toBe('permission_denied')
    const removed = ['1', '2', '3'].filter((name) => !existsSync(join(folder, name)))
    expect(readFileSync(join(sticky, 'theirs'), 'utf8')).toBe('theirs')
    if (removed.length > 0) {
      expect(textOf(result)).toContain(`${removed.length} of 6 entries were removed`)
      expect(codeOf(await client.call('Undo', keyed({})))).toBeUndefined()
    }
    for (const name of ['1', '2', '3']) expect(readFileSync(join(folder, name), 'utf8')).toBe(name)
  })
})

it('GU-40 FI-15 two hosts of two homes in one workspace: no change of either is lost', async () => {
  const one = await start()
  const two = await start({ base: one.base, homeName: 'second' })
  const file = join(one.workspace, 'shared')
  writeFileSync(file, 'left\nright\n')
  const [left, right] = [await clientOf(one), await clientOf(two)]
  const said: Record<string, number> = { left: 0, right: 0 }
  const codes = new Set<string | undefined>()
  for (let round = 0; round < 60; round++) {
    const edit = (client: TestClient, side: string) =>
      client.call('Edit', keyed({ path: 'shared', old_string: side, new_string: `.${side}` })).then((result) => {
        codes.add(codeOf(result))
        if (codeOf(result) === undefined) said[side] = (said[side] ?? 0) + 1
      })
    await Promise.all([edit(left, 'left'), edit(right, 'right')])
  }
  expect([...codes].filter((code) => code !== undefined && code !== 'conflict')).toEqual([])
  expect(readFileSync(file, 'utf8')).toBe(`${'.'.repeat(said.left ?? 0)}left\n${'.'.repeat(said.right ?? 0)}right\n`)
  expect(said.left).toBeGreaterThan(0)
  expect(said.right).toBeGreaterThan(0)
})
