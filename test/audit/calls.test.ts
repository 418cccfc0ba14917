import { afterEach, beforeEach, expect, it } from 'vitest'
import { KikiError } from '../../src/lib/errors.js'
import { type Core, openCore } from '../operations/harness.js'

let core: Core
let audit: Core['audit']
beforeEach(async () => {
  core = await openCore()
  audit = core.audit
})
afterEach(() => core.close())

const entries = async () => (await audit.list({ filter: {}, limit: 10 })).map(({ mac: _, ...row }) => row)

it('GU-68 FC-W01 a call’s entry tells who, where, what, by which rule and how it ended, and none of its arguments', async () => {
  const claim = await core.operations.claim(core.request('key-1', { path: 'a.txt', password: 'CANARY-PASSWORD' }))
  if (claim.kind !== 'new') throw new Error('it is new')
  core.time.now += 250
  await core.operations.run(claim.live, async () => {
    throw new KikiError('conflict', 'It changed to CANARY-MESSAGE.')
  })
  const row = core.store.operations.get(claim.live.id)
  if (row === undefined) throw new Error('it has ended')
  expect(await entries()).toEqual([
    {
      seq: 1,
      at: core.time.now,
      actor: core.connection.id,
      action: 'call',
      connection_id: core.connection.id,
      session_ref: core.session.ref,
      operation_id: row.id,
      tool: 'Write',
      argument_hash: row.fingerprint,
      decision: 'allow',
      rule: 'test',
      status: 'failed',
      error_code: 'conflict',
      duration_ms: 250,
      detail: null,
    },
  ])
  expect(JSON.stringify(core.store.db.prepare('SELECT * FROM audit').all())).not.toContain('CANARY')
})

it('GU-68 the owner’s own call, a nested one and a cancelled one say so; a row that cannot be read costs no entry', async () => {
  const claim = await core.operations.claim({
    ...core.request('key-2'),
    decision: { kind: 'allow', by: 'owner', reason: '' },
    byOwner: true,
    parentId: 'op_parent',
  })
  if (claim.kind !== 'new') throw new Error('it is new')
  const { row } = claim.live
  const ending = { status: 'cancelled' as const, ended_at: row.accepted_at - 5, error_code: 'cancelled' }
  await core.store.commits.vital(() => {
    audit.recordCall({ ...row, approval_id: 'appr_1' }, ending)
    audit.recordCall({ ...row, decision: '{not json' }, ending)
  })
  expect(await entries()).toMatchObject([
    { seq: 2, actor: core.connection.id, decision: null, rule: null },
    {
      seq: 1,
      actor: 'owner',
      connection_id: core.connection.id,
      status: 'cancelled',
      duration_ms: 0,
      detail: '{"approval":"appr_1","parent":"op_parent"}',
    },
  ])
})

it('GU-68 GU-08 a refusal is noted without a commit of its own, with the setting that refused it', async () => {
  const error = new KikiError('permission_denied', 'Write has side effects.', {
    data: { setting: 'connection.ceiling' },
  })
  audit.recordRefusal({ connectionId: core.connection.id, sessionRef: core.session.ref, tool: 'Write', error })
  audit.recordRefusal({ connectionId: core.connection.id, error: new KikiError('tool_unavailable', 'No CANARY.') })
  expect(core.store.audit.last()).toBeUndefined()
  await core.store.commits.durable(() => undefined)
  expect(await entries()).toMatchObject([
    { action: 'refused', session_ref: null, tool: null, rule: null, error_code: 'tool_unavailable' },
    {
      actor: core.connection.id,
      action: 'refused',
      session_ref: core.session.ref,
      tool: 'Write',
      decision: 'deny',
      rule: 'connection.ceiling',
      status: 'refused',
      error_code: 'permission_denied',
    },
  ])
})

it('GU-68 OP-07 the entry outlives the operation and the session that it tells of', async () => {
  const claim = await core.operations.claim(core.request('key-3'))
  if (claim.kind !== 'new') throw new Error('it is new')
  await core.operations.run(claim.live, async () => ({ content: [] }))
  await core.lifecycle.deleteSession(core.session.ref)
  expect(core.store.operations.get(claim.live.id)).toBeUndefined()
  expect(await entries()).toMatchObject([{ operation_id: claim.live.id, session_ref: core.session.ref }])
})

it('GU-68 a client that is refused all the time cannot fill the log: what is not written is counted', async () => {
  const refuse = () =>
    audit.recordRefusal({ connectionId: core.connection.id, error: new KikiError('tool_unavailable', 'No such tool.') })
  for (let i = 0; i < 500; i++) refuse()
  const other = new KikiError('tool_unavailable', 'No such tool.')
  audit.recordRefusal({ connectionId: 'client_other', error: other })
  await core.store.commits.durable(() => undefined)
  const written = (actor: string) =>
    core.store.db.prepare('SELECT count(*) FROM audit WHERE actor = ?').pluck().get(actor)
  expect(written(core.connection.id)).toBe(120)
  expect(written('client_other')).toBe(1)
  core.time.now += 60_000
  refuse()
  await core.store.commits.durable(() => undefined)
  expect((await entries())[0]).toMatchObject({
    action: 'refused',
    detail: JSON.stringify({ refusals_not_written: 380 }),
  })
})
