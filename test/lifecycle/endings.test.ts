import { afterEach, beforeEach, expect, it } from 'vitest'
import { deferred } from '../../src/lib/async.js'
import { createJournal } from '../../src/workspace/journal.js'
import { type Core, openCore } from '../operations/harness.js'

let core: Core

beforeEach(async () => {
  core = await openCore()
})
afterEach(() => core.close())

it('GR-02 a revoked connection stays revoked, whatever is asked in the same moment', async () => {
  const id = core.connection.id
  const asked = [
    core.lifecycle.revoke(id),
    core.lifecycle.pause(id),
    core.lifecycle.resume(id),
    core.lifecycle.change(id, { name: 'renamed' }),
  ]
  const outcomes = await Promise.allSettled(asked)
  expect(outcomes.map((one) => one.status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  expect(core.connections.require(id)).toMatchObject({ status: 'revoked', name: 'renamed' })
})

it('GR-02 two changes of one connection in the same moment both count, each with its own policy version', async () => {
  const id = core.connection.id
  await Promise.all([
    core.lifecycle.change(id, { grant: { ceiling: 'manual' } }),
    core.lifecycle.change(id, { grant: { tools: ['search'] } }),
  ])
  expect(core.connections.require(id)).toMatchObject({
    policyVersion: 3,
    grant: { ceiling: 'manual', tools: ['search'] },
  })
})

it('GU-02 a call that was decided before a policy change does not begin after it, and its key stays free', async () => {
  const before = core.request('k')
  await core.lifecycle.change(core.connection.id, { grant: { ceiling: 'manual' } })
  await expect(core.operations.claim(before)).rejects.toMatchObject({ code: 'cancelled' })
  expect((await core.operations.claim(core.request('k'))).kind).toBe('new')
})

it.each(['pause', 'revoke'] as const)(
  'GU-02 a call that was decided before a %s does not begin after it',
  async (ending) => {
    const before = core.request('k')
    await core.lifecycle[ending](core.connection.id)
    const code = ending === 'pause' ? 'connection_paused' : 'connection_revoked'
    await expect(core.operations.claim(before)).rejects.toMatchObject({ code })
  },
)

it('GU-02 a call whose session was closed meanwhile does not begin', async () => {
  const before = core.request('k')
  await core.lifecycle.closeSession(core.session.ref)
  await expect(core.operations.claim(before)).rejects.toMatchObject({ code: 'session_closed' })
})

it('OP-11 what was changed by work that was ended from outside is recorded all the same', async () => {
  const claim = await core.operations.claim(core.request('k'))
  if (claim.kind !== 'new') throw new Error(claim.kind)
  const began = deferred<void>()
  const running = core.operations.run(claim.live, async (live) => {
    live.journal = createJournal({ dir: core.changesFolder, operationId: live.id })
    live.journal.record({ kind: 'create', path: '/x' })
    began.resolve()
    return new Promise((_, reject) => {
      live.controller.signal.addEventListener('abort', () => reject(live.controller.signal.reason))
    })
  })
  await began.promise
  await core.lifecycle.revoke(core.connection.id)
  await running
  expect(core.store.operations.get(claim.live.id)).toMatchObject({ status: 'cancelled', effects_possible: 1 })
  expect(core.store.changes.ofOperation(claim.live.id)).toHaveLength(1)
})

it('SE-14 a session is deleted with its operations, though its work never ends', async () => {
  const claim = await core.operations.claim(core.request('k'))
  if (claim.kind !== 'new') throw new Error(claim.kind)
  const end = deferred<void>()
  const running = core.operations.run(claim.live, async (live) => {
    live.journal = createJournal({ dir: core.changesFolder, operationId: live.id })
    live.journal.record({ kind: 'create', path: '/x' })
    await end.promise
    return { content: [] }
  })
  await core.lifecycle.deleteSession(core.session.ref)
  expect(core.sessions.get(core.session.ref)).toBeUndefined()
  end.resolve()
  await running
  expect(core.store.operations.get(claim.live.id)).toBeUndefined()
  expect(core.store.changes.ofOperation(claim.live.id)).toEqual([])
})
