import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { callTool, type GateDeps } from '../../src/calls/call-tool.js'
import type { ToolRequest } from '../../src/calls/caller.js'
import { createScripts } from '../../src/calls/command.js'
import { createRateLimit } from '../../src/calls/rate.js'
import { configSchema } from '../../src/config/schema.js'
import type { Reply } from '../../src/lib/content.js'
import { silentLog } from '../../src/lib/log.js'
import { type ChildProcesses, createProcesses } from '../../src/processes/processes.js'
import { createHomeFence } from '../../src/workspace/fence.js'
import { type ApprovalCore, openApprovals } from '../approvals/harness.js'
import { createTestShell } from '../helpers/shell.js'

let core: ApprovalCore
let processes: ChildProcesses
let deps: GateDeps

beforeEach(async () => {
  core = await openApprovals()
  processes = createProcesses({ dir: join(core.base, 'run'), log: silentLog, env: {} })
  deps = {
    ...core,
    processes,
    shell: createTestShell({ ...core, dir: core.base, processes }).shell,
    rate: createRateLimit(core.clock),
    log: silentLog,
    fence: createHomeFence(join(core.base, 'home')),
    scratch: join(core.base, 'scratch'),
    externalClients: true,
    scripts: createScripts(),
    config: () => configSchema.parse({}),
  }
  writeFileSync(join(core.base, 'ws', 'small'), 'a line\n')
  writeFileSync(join(core.base, 'ws', 'large'), 'a line of text\n'.repeat(5000))
  writeFileSync(join(core.base, 'ws', 'endless'), 'a line of text\n'.repeat(700_000))
})
afterEach(async () => {
  await processes.close()
  core.close()
})

const caller = () => ({ connectionId: core.connection.id, holder: 'bridge:b', fixedSession: core.session.ref })
const ask = (request: ToolRequest) => callTool(deps, caller(), request)
const operationOf = (reply: Reply) =>
  reply._meta['kiki/operation'] as { operation_id: string; status: string; replayed?: boolean } | undefined

/** Rows of the table, once nothing is left that would still write. */
async function rows() {
  while (core.operations.lives().length > 0) await setImmediate()
  await core.operations.settleRecords()
  return core.store.operations.list({ limit: 1000 })
}

/** Waits for so many steps of one kind: a step of promises goes on to the next `await`, a turn lets everything queued run. */
async function after(steps: number, kind: 'promise' | 'turn'): Promise<void> {
  for (let step = 0; step < steps; step++) await (kind === 'promise' ? Promise.resolve() : setImmediate())
}

const WHEN = [
  ...Array.from({ length: 60 }, (_, steps) => [steps, 'promise'] as const),
  ...Array.from({ length: 12 }, (_, steps) => [steps, 'turn'] as const),
]

/** A call whose signal is aborted at some point, before its end or after; what was on record just before, and at last. */
async function aborted(request: ToolRequest, [steps, kind]: (typeof WHEN)[number]) {
  const controller = new AbortController()
  const answer = ask({ ...request, signal: controller.signal })
  await after(steps, kind)
  const before = core.store.operations.list({ limit: 1000 })
  controller.abort()
  const reply = await answer
  return { before, reply, rows: await rows() }
}

describe('a signal that is aborted', () => {
  it.each([
    ['small', 1, ['completed']],
    ['large', 1, ['completed']],
    ['endless', 690_000, ['cancelled', 'completed']],
  ])(
    'GU-24 OP-12 at any await of a plain read (%s): it ends once, and what is told is on record',
    async (path, offset, all) => {
      const statuses = new Set<string>()
      for (const when of WHEN) {
        const request = { name: 'Read', arguments: { path, offset } }
        const seen = (await rows()).length
        const { before, reply, rows: later } = await aborted(request, when)
        const row = later[0]
        expect(later.length).toBe(seen + 1)
        expect(['completed', 'cancelled']).toContain(row?.status)
        statuses.add(row?.status ?? '')
        const was = before.find(({ id }) => id === row?.id)
        if (was !== undefined && was.status !== 'running') expect(row).toEqual(was)
        // Who is still there is told what is on record.
        if (operationOf(reply)?.status !== 'running') expect(operationOf(reply)?.status).toBe(row?.status)
      }
      expect([...statuses]).toEqual(expect.arrayContaining(all))
    },
  )

  it('GU-24 GU-20 at any await of a keyed call does nothing to it, its result or its replay', async () => {
    for (const [index, when] of WHEN.entries()) {
      for (const [name, args] of [
        ['Write', { path: 'written', content: `${index}` }],
        ['Read', { path: 'large' }],
      ] as const) {
        const request = { name, arguments: { ...args, _kiki: { idempotency_key: `${name}${index}` } } }
        const [row] = (await aborted(request, when)).rows
        expect(row).toMatchObject({ tool: name, status: 'completed', effects_possible: 0, error_code: null })
        const replay = await ask(request)
        expect(operationOf(replay)).toMatchObject({ operation_id: row?.id, status: 'completed', replayed: true })
        expect(replay.isError).toBeUndefined()
        expect((await rows())[0]).toEqual(row)
      }
      expect(readFileSync(join(core.base, 'ws', 'written'), 'utf8')).toBe(`${index}`)
    }
  })

  it('GU-24 after the answer, as the SDK does it on stateless legs, changes neither row nor result nor replay', async () => {
    for (const [index, [steps, kind]] of WHEN.entries()) {
      for (const { name, args } of [
        { name: 'Read', args: { path: 'small' } },
        { name: 'Read', args: { path: 'large' } },
        { name: 'Read', args: { path: 'large', _kiki: { idempotency_key: `r${index}` } } },
        { name: 'Write', args: { path: 'w', content: `${index}`, _kiki: { idempotency_key: `w${index}` } } },
        { name: 'Read', args: { path: 'missing', _kiki: { idempotency_key: `m${index}` } } },
      ]) {
        const controller = new AbortController()
        const reply = await ask({ name, arguments: args, signal: controller.signal })
        await after(steps, kind)
        await core.operations.settleRecords()
        const [before] = core.store.operations.list({ limit: 1 })
        controller.abort()
        await after(20, 'promise')
        const [row] = await rows()
        expect(row).toEqual(before)
        expect(row?.status).toBe('path' in args && args.path === 'missing' ? 'failed' : 'completed')
        expect(operationOf(reply)).toMatchObject({ operation_id: row?.id, status: row?.status })
        if ('_kiki' in args) {
          const replay = await ask({ name, arguments: args, signal: controller.signal })
          expect(replay.content.slice(1)).toEqual(reply.content)
          expect(replay.isError).toBe(reply.isError)
        }
      }
    }
  })

  it('GU-24 of a second caller of the same key stops neither the first nor the work', async () => {
    for (const [index, when] of WHEN.entries()) {
      const request = { name: 'Read', arguments: { path: 'large', _kiki: { idempotency_key: `two${index}` } } }
      const first = ask(request)
      const { rows: later } = await aborted(request, when)
      expect(operationOf(await first)).toMatchObject({ operation_id: later[0]?.id, status: 'completed' })
      expect(later[0]?.status).toBe('completed')
    }
  })
})
