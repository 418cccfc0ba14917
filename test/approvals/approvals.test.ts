import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kindsOf } from '../../src/approvals/kinds.js'
import { mustBeApproved } from '../../src/operations/claim.js'
import { readRule, ruleMatches } from '../../src/policy/rules.js'
import { type ApprovalCore, openApprovals } from './harness.js'

const DAY = 86_400_000
let core: ApprovalCore

beforeEach(async () => {
  core = await openApprovals(30 * DAY)
  core.approvals.consumers.add()
})
afterEach(() => core.close())

describe('expiry', () => {
  it('FC-O08 AP-02 a question of 30 days is open after 5 s, and denied when they are over', async () => {
    const { id, live } = await core.ask()
    core.time.now += 5000
    await core.approvals.expire()
    expect(core.store.operations.get(live.id)?.status).toBe('waiting_approval')
    core.time.now += 30 * DAY
    await core.approvals.expire()
    expect(core.store.operations.get(live.id)).toMatchObject({ status: 'cancelled', error_code: 'approval_denied' })
    expect((await live.ended.promise).error?.message).toContain('Nobody answered in time')
    expect(core.approvals.require(id).approval.answered_by).toBe('expiry')
  })

  it('GU-44 a wall clock that was set back does not keep a question open', async () => {
    const { live } = await core.ask()
    const began = core.time.now
    const { monotonic } = core.clock
    core.time.now = began - DAY
    core.clock.monotonic = () => began + 30 * DAY
    await core.approvals.expire()
    core.clock.monotonic = monotonic
    expect(core.store.operations.get(live.id)?.status).toBe('cancelled')
  })
})

describe('the same kind for a session', () => {
  const kinds = [{ key: 'Write:/ws', pattern: 'Write(/ws/*)' }]
  it('GU-33 is bound to session, kind, definition and policy version', async () => {
    const { id, live } = await core.ask({ kinds, definition: 'one' })
    await core.approvals.answer(id, { answer: 'approved', scope: 'session', by: 'owner' })
    await live.ended.promise
    const version = live.row.policy_version
    const covered = (session: string, policy: number, kind: string, definition: string) =>
      core.approvals.coveredBySession(session, policy, { kinds: [{ key: kind, pattern: '' }], definition })
    const ref = core.session.ref
    expect(covered(ref, version, 'Write:/ws', 'one')).toBe(true)
    expect(covered('ext_other', version, 'Write:/ws', 'one')).toBe(false)
    expect(covered(ref, version + 1, 'Write:/ws', 'one')).toBe(false)
    expect(covered(ref, version, 'Write:/ws/sub', 'one')).toBe(false)
    expect(covered(ref, version, 'Edit:/ws', 'one')).toBe(false)
    expect(covered(ref, version, 'Write:/ws', 'two')).toBe(false)
    expect(core.approvals.coveredBySession(ref, version, { kinds: [], definition: 'one' })).toBe(false)
  })

  it('AP-04 a call that cannot be told apart is approved once or not at all, and a refused answer leaves it waiting', async () => {
    const { id, live } = await core.ask()
    const answer = core.approvals.answer(id, { answer: 'approved', scope: 'session', by: 'owner' })
    await expect(answer).rejects.toMatchObject({ code: 'invalid_arguments' })
    expect(core.store.operations.get(live.id)?.status).toBe('waiting_approval')
    expect((await core.approvals.answer(id, { answer: 'approved', by: 'owner' })).changed).toBe(true)
    await live.ended.promise
  })

  it('AP-04 the rule that "always" makes is about that folder, whatever its name holds', () => {
    for (const folder of ['/ws/a|b', '/ws/a[1]', '/ws/{a,b}', '/ws/a*?', '/ws/a\\b', '/ws/+(a)', '/ws/(x)']) {
      const [kind] = kindsOf({ tool: 'Write', targets: [{ given: `${folder}/f`, real: `${folder}/f` }] })
      const rule = readRule({ decision: 'allow', pattern: kind?.pattern ?? '' }, 'x', () => 'paths')
      if ('problem' in rule) throw new Error(rule.problem)
      const fits = (real: string) => {
        const place = { connection: { id: 'c', name: 'c' }, workspace: '/ws' }
        return ruleMatches(rule, { tool: 'Write', ...place, targets: [{ given: real, real }] })
      }
      expect([folder, fits(`${folder}/g`), fits(`${folder}/sub/g`), fits('/ws/a'), fits('/ws/a1/g')]).toEqual([
        folder,
        true,
        false,
        false,
        false,
      ])
    }
  })

  it('AP-04 of a file it is folder and tool, of a command its prefix, of any other tool its name; signs of patterns stand for themselves', () => {
    const target = (real: string) => ({ given: real, real })
    expect(kindsOf({ tool: 'Move', targets: [target('/ws/a'), target('/ws/b*/c')] })).toEqual([
      { key: 'Move:/ws', pattern: 'Move(/ws/*)' },
      { key: 'Move:/ws/b*', pattern: 'Move(/ws/b\\*/*)' },
    ])
    expect(kindsOf({ tool: 'Bash', targets: [] }, ['git status', 'git status', 'ls'])).toEqual([
      { key: 'Bash(git status)', pattern: 'Bash(git status *)' },
      { key: 'Bash(ls)', pattern: 'Bash(ls *)' },
    ])
    expect(kindsOf({ tool: 'Bash', targets: [] }, null)).toEqual([])
    expect(kindsOf({ tool: 'mcp__x__y', targets: [] })).toEqual([{ key: 'mcp__x__y', pattern: 'mcp__x__y' }])
  })
})

describe('what a yes is for', () => {
  it('AP-05 GU-02 one operation under one policy: no other begins by it, whatever its row says', async () => {
    const first = await core.ask()
    const second = await core.ask()
    await core.approvals.answer(first.id, { answer: 'approved', by: 'owner' })
    await first.live.ended.promise
    expect(core.store.operations.get(second.live.id)?.status).toBe('waiting_approval')
    const row = core.store.operations.get(second.live.id)
    if (row === undefined) throw new Error('it is there')
    expect(() => mustBeApproved(core.store, row)).toThrow('not approved')
    expect(() => mustBeApproved(core.store, { ...row, approval_id: first.id })).toThrow('not approved')
    await core.approvals.answer(second.id, { answer: 'approved', by: 'owner' })
    expect(() => mustBeApproved(core.store, row)).not.toThrow()
    expect(() => mustBeApproved(core.store, { ...row, policy_version: row.policy_version + 1 })).toThrow('not approved')
  })
})
