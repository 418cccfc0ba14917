import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FAMILIES } from '../../src/policy/modes.js'
import { CATALOG } from '../../src/tools/catalog.js'
import { buildKiki } from './kiki.js'

const kiki = buildKiki()
const home = join(kiki.dir, 'home')
const workspace = join(kiki.dir, 'work')

beforeAll(async () => {
  await mkdir(workspace)
  const { code, err } = await run('start', '--background')
  expect([code, err]).toEqual([0, ''])
})

afterAll(async () => {
  await run('stop')
  kiki.remove()
})

const run = (...args: string[]) => kiki.run([...args, '--home', home])

/** The value of a command that succeeds, from a stdout that holds nothing else. */
async function json(...args: string[]) {
  const ran = await run(...args, '--json')
  expect(ran).toMatchObject({ code: 0, err: '' })
  return JSON.parse(ran.out)
}

describe('kiki connections', { timeout: 20_000 }, () => {
  it('CL-04 GR-03 a bare add may only look', async () => {
    const made = await json('connections', 'add', '--name', 'bare')
    expect(made).toMatchObject({
      id: expect.stringMatching(/^client_/),
      name: 'bare',
      kind: 'local',
      status: 'active',
      tools: ['files', 'search', 'media'],
      ceiling: 'read-only',
      allow_commands: false,
      network: 'off',
    })
    expect(made).not.toHaveProperty('token')
  })

  it('CL-04 every flag has its field, and flags stand over a preset', async () => {
    const flags =
      '--kind token --preset operator --tools files,mcp__* --ceiling yolo --no-allow-commands --network a.example,b.example ' +
      `--dir ${workspace} --memory workspace,global --history connection --exposure deferred --sandbox preferred ` +
      '--idempotency auto --inline-limit 5000 --inline-media-limit 6000 --wait-ms 7 --rate 8 --concurrency 9 ' +
      `--template-workspace ${workspace} --template-mode manual --template-profile p --expires 2100-01-02`
    const made = await json('connections', 'add', '--name', 'all of it', ...flags.split(' '))
    expect(made).toMatchObject({
      name: 'all of it',
      kind: 'token',
      token: expect.stringMatching(/^kiki_.{40,}$/),
      tools: ['files', 'mcp__*'],
      ceiling: 'full',
      allow_commands: false,
      network: ['a.example', 'b.example'],
      dirs: [await realpath(workspace)],
      memory: ['workspace', 'global'],
      history: 'connection',
      exposure: 'deferred',
      sandbox: 'preferred',
      idempotency: 'auto',
      inline_text_limit: 5000,
      inline_media_limit: 6000,
      wait_ms: 7,
      rate: 8,
      concurrency: 9,
      template: { workspace, mode: 'manual', profile: 'p' },
      expires_at: '2100-01-02T00:00:00.000Z',
    })
  })

  it('CL-05 set changes what it names and nothing else', async () => {
    const { id } = await json(
      'connections',
      'add',
      '--name',
      'set',
      '--preset',
      'editor',
      '--template-workspace',
      workspace,
    )
    const before = await json('connections', 'show', id)
    const changed = await json(
      'connections',
      'set',
      id,
      '--ceiling',
      'manual',
      '--template-mode',
      'manual',
      '--rate',
      '5',
    )
    const { policy_version, cancelled, ...rest } = changed
    expect({ policy_version, cancelled }).toEqual({ policy_version: before.policy_version + 1, cancelled: 0 })
    const template = { ...before.template, mode: 'manual' }
    expect(rest).toEqual({ ...rest, ...before, policy_version: undefined, ceiling: 'manual', rate: 5, template })
    expect(await json('connections', 'set', id, '--rate', 'none', '--no-template', '--expires', 'none')).toMatchObject({
      rate: null,
      template: null,
    })
    const nothing = await run('connections', 'set', id)
    expect([nothing.code, nothing.err]).toEqual([1, expect.stringContaining('Nothing to change')])
    const kind = await run('connections', 'set', id, '--kind', 'remote')
    expect([kind.code, kind.err]).toEqual([1, expect.stringContaining('cannot be changed')])
  })

  it('CL-05 pause, resume, revoke and delete, which alone asks', async () => {
    const { id } = await json('connections', 'add', '--name', 'ends')
    expect((await json('connections', 'pause', id)).status).toBe('paused')
    expect((await json('connections', 'resume', id)).status).toBe('active')
    expect((await json('connections', 'revoke', id)).status).toBe('revoked')
    const asked = await run('connections', 'delete', id)
    expect([asked.code, asked.err]).toEqual([1, expect.stringContaining('--yes')])
    expect(await json('connections', 'delete', id, '--yes')).toEqual({ deleted: id })
    const { connections } = await json('connections', 'list')
    expect(connections.map((one: { id: string }) => one.id)).not.toContain(id)
    const gone = await run('connections', 'show', id, '--json')
    expect([gone.code, JSON.parse(gone.out).error.code]).toEqual([1, 'not_found'])
    expect(gone.err).toContain('kiki connections list')
  })

  it.each([
    ['--ceiling', 'boss'],
    ['--rate', '-1'],
    ['--wait-ms', '1.5'],
    ['--expires', '2001-01-01'],
    ['--expires', 'soon'],
    ['--network', ','],
    ['--preset', 'admin'],
  ])('CL-04 refuses %s %s as wrong usage, and makes nothing', async (flag, value) => {
    const before = await json('connections', 'list')
    const { code, out, err } = await run('connections', 'add', '--name', 'x', flag, value)
    expect([code, out]).toEqual([2, ''])
    expect(err).toContain(flag)
    expect(await json('connections', 'list')).toEqual(before)
  })
})

describe('kiki sessions and operations', { timeout: 20_000 }, () => {
  it('CL-06 CL-07 sessions are made, listed, closed and deleted', async () => {
    const { id } = await json('connections', 'add', '--name', 'sessions', '--preset', 'editor')
    const made = await json(
      'sessions',
      'create',
      '--connection',
      id,
      '--workspace',
      workspace,
      '--mode',
      'manual',
      '--title',
      'T',
    )
    expect(made).toMatchObject({
      session_ref: expect.stringMatching(/^ext_/),
      connection: id,
      workspace: await realpath(workspace),
      mode: 'manual',
      title: 'T',
      status: 'open',
    })
    const ref = made.session_ref
    const listed = await json('sessions', 'list', '--connection', id, '--limit', '1')
    expect(listed.sessions).toEqual([made])
    expect(await json('sessions', 'show', ref)).toEqual({ ...made, saved_texts: [] })
    expect(await json('sessions', 'close', ref)).toMatchObject({ status: 'closed', cancelled: 0 })
    expect((await run('sessions', 'delete', ref)).code).toBe(1)
    expect(await json('sessions', 'delete', ref, '--yes')).toEqual({ deleted: ref, ended_worktree: null })
  })

  it('CL-06 takes a workspace as seen from where the command runs', async () => {
    const { id } = await json('connections', 'add', '--name', 'relative')
    const { workspace: found } = await json('sessions', 'create', '--connection', id, '--workspace', '.')
    expect(found).toBe(await realpath('.'))
  })

  it('CL-08 operations are listed, and unknown ones are said to be so', async () => {
    expect(await json('operations', 'list', '--status', 'running', '--limit', '5')).toEqual({ operations: [] })
    for (const verb of ['show', 'cancel']) {
      const { code, err } = await run('operations', verb, 'op_none')
      expect([code, err]).toEqual([1, expect.stringContaining('kiki operations list')])
    }
    expect((await run('operations', 'list', '--status', 'odd')).code).toBe(2)
  })
})

describe('kiki connect', () => {
  it('CL-13 prints what the client has to start, with absolute paths', async () => {
    const { id } = await json('connections', 'add', '--name', 'connect')
    const { session_ref: ref } = await json('sessions', 'create', '--connection', id, '--workspace', workspace)
    const { config, file } = await json('connect', 'cursor', '--client', id, '--session', ref)
    expect(file).toMatch(/^\/.*mcp\.json$/)
    expect(JSON.stringify(config)).toContain(
      JSON.stringify(['mcp', '--client', id, '--tools', '--home', home, '--session', ref]).slice(1),
    )
    expect(JSON.stringify(config)).toContain(kiki.main)
    expect((await run('connect', 'notepad', '--client', id)).code).toBe(2)
  })

  it('CL-13 says what would never be let in, and what only waits', async () => {
    const { id } = await json('connections', 'add', '--name', 'checked')
    const other = await json('connections', 'add', '--name', 'other')
    const make = async (connection: string) =>
      (await json('sessions', 'create', '--connection', connection, '--workspace', workspace)).session_ref
    const [mine, foreign] = [await make(id), await make(other.id)]
    const remote = await json('connections', 'add', '--name', 'remote', '--kind', 'remote')
    const refused = async (connection: string, ref: string | undefined, what: string) => {
      const session = ref === undefined ? [] : ['--session', ref]
      const { code, out, err } = await run('connect', 'cursor', '--client', connection, ...session)
      expect([code, out, err]).toEqual([1, '', expect.stringContaining(what)])
    }
    await refused('client_none', undefined, 'no connection client_none')
    await refused(remote.id, undefined, 'needs a local one')
    await refused(id, 'ext_none', 'no session ext_none')
    await refused(id, foreign, `belongs to ${other.id}`)
    await json('connections', 'pause', id)
    const paused = await run('connect', 'cursor', '--client', id, '--session', mine)
    expect([paused.code, paused.err]).toEqual([0, expect.stringContaining('is paused')])
    await json('sessions', 'close', mine)
    await refused(id, mine, `${mine} is closed`)
    await json('connections', 'revoke', id)
    await refused(id, undefined, 'is revoked')
  })

  it('CL-13 without a host it says in one line that nothing could be checked', async () => {
    const empty = join(kiki.dir, 'no host')
    const { code, out, err } = await kiki.run(['connect', 'cursor', '--client', 'client_1', '--home', empty])
    expect([code, out]).toEqual([0, expect.stringContaining('client_1')])
    expect(err).toMatch(/^No host runs, so it could not be checked .*`kiki start --home '.*no host'`\.\n$/)
  })
})

describe('what a person reads', { timeout: 30_000 }, () => {
  it('CL-04 CL-06 each step names the next one, with what it needs', async () => {
    const added = await run('connections', 'add', '--name', 'steps', '--preset', 'editor', '--ceiling', 'yolo')
    const id = /client_[\w-]+/.exec(added.out)?.[0] ?? ''
    expect(added.out).toContain(`Next: kiki sessions create --connection ${id} --workspace DIR --home ${home}`)
    expect(added.out).toContain(`Then: kiki connect NAME-OF-CLIENT --client ${id} --session REF --home ${home}`)
    expect(added.out).toContain('yolo is another word for full')
    const made = await run('sessions', 'create', '--connection', id, '--workspace', workspace)
    const ref = /ext_[\w-]+/.exec(made.out)?.[0] ?? ''
    expect(made.out).toContain(`Next: kiki connect NAME-OF-CLIENT --client ${id} --session ${ref} --home ${home}`)
    expect(made.out).not.toContain('yolo')
    for (const verb of [
      ['connections', 'add'],
      ['sessions', 'create'],
    ]) {
      expect((await run(...verb, '--help')).out.replace(/\s+/g, ' ')).toContain('yolo is another word for full')
    }
  })

  it('CL-04 GR-03 granted families without any tool here are named, and only they', async () => {
    const empty = FAMILIES.filter((family) => !CATALOG.some((tool) => tool.family === family))
    const all = await json('connections', 'add', '--name', 'all', '--tools', `${FAMILIES.join(',')},mcp__*`)
    expect(all.families_without_tools).toEqual(empty)
    const full = FAMILIES.filter((family) => !empty.includes(family))
    expect((await run('connections', 'add', '--name', 'full', '--tools', full.join(','))).out).not.toContain(
      'without any',
    )
    const shown = await run('connections', 'add', '--name', 'all', '--tools', FAMILIES.join(','))
    expect(shown.out).toContain(`without any tool in this version: ${empty.join(', ')}.`)
  })

  it('CL-05 pause, resume and revoke of what already was say so', async () => {
    const { id } = await json('connections', 'add', '--name', 'twice')
    expect((await run('connections', 'resume', id)).out).toContain('was already active; nothing was changed')
    for (const [verb, state] of [
      ['pause', 'paused'],
      ['revoke', 'revoked'],
    ] as const) {
      expect((await run('connections', verb, id)).out).toContain(`is ${state}.`)
      expect((await run('connections', verb, id)).out).toContain(`was already ${state}; nothing was changed`)
    }
  })

  it('CL-02 CL-07 a session of a revoked connection is shown as such and not counted', async () => {
    const { id } = await json('connections', 'add', '--name', 'revoked')
    const before = (await json('status')).sessions
    const { session_ref: ref } = await json('sessions', 'create', '--connection', id, '--workspace', workspace)
    expect((await json('status')).sessions).toBe(before + 1)
    await json('connections', 'revoke', id)
    expect((await json('status')).sessions).toBe(before)
    expect((await run('sessions', 'list', '--connection', id)).out).toContain('open (connection revoked)')
    expect((await run('sessions', 'show', ref)).out).toContain('open (connection revoked)')
  })

  it('CL-02 status is in words, without what means nothing yet', async () => {
    const { out } = await run('status')
    expect(out).toContain('nothing beyond this machine can reach Kiki')
    expect(out).not.toMatch(/[{}]|sandbox|upstreams|approval_consumers/)
    expect((await run('status', '--help')).out.replace(/\s+/g, ' ')).toContain('running: false, exit code 0')
  })
})
