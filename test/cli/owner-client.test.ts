import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAdaptorServer } from '@hono/node-server'
import { Hono } from 'hono'
import { hc } from 'hono/client'
import { streamSSE } from 'hono/streaming'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createOwnerFetch, OWNER_ORIGIN, resultOf } from '../../src/cli/owner-client.js'
import { type HomePaths, homePaths } from '../../src/config/home.js'
import { deferred } from '../../src/lib/async.js'

let paths: HomePaths
let server: Server | undefined

beforeEach(async () => {
  paths = homePaths(await mkdtemp(join(tmpdir(), 'kiki-owner-')))
})

afterEach(async () => {
  server?.closeAllConnections()
  server?.close()
  server = undefined
  await rm(paths.dir, { recursive: true, force: true })
})

const closed = deferred<string>()

const app = new Hono()
  .get('/api/echo', (c) => c.json({ host: c.req.header('host'), q: c.req.query('q') }))
  .post('/api/echo', async (c) => c.json({ body: await c.req.text(), type: c.req.header('content-type') }))
  .delete('/api/echo', (c) => c.body(null, 204))
  .get('/api/refused', (c) => {
    return c.json(
      { error: { code: 'not_found', message: 'There is no such thing.', hint: 'Look.', data: { a: 1 } } },
      404,
    )
  })
  .get('/api/newer', (c) => c.json({ error: { code: 'code_of_later_version', message: 'Later.' } }, 400))
  .get('/api/broken', (c) => c.text('<html>', 500))
  .get('/api/events', (c) =>
    streamSSE(c, async (stream) => {
      stream.onAbort(() => closed.resolve('closed'))
      await stream.writeSSE({ data: 'first' })
      await closed.promise
    }),
  )

async function listen(socket = paths.socket) {
  server = createAdaptorServer({ fetch: app.fetch }) as Server
  const bound = server
  await new Promise<void>((resolve) => bound.listen(socket, resolve))
}

const client = () => hc<typeof app>(OWNER_ORIGIN, { fetch: createOwnerFetch(paths) })

describe('the owner client', () => {
  it('asks and sends over the local socket, typed', async () => {
    await listen()
    const asked = await resultOf(client().api.echo.$get(undefined, { headers: { host: 'elsewhere.example' } }))
    expect(asked).toEqual({ host: 'localhost' })
    const send = createOwnerFetch(paths)
    const body = JSON.stringify({ text: 'ä'.repeat(300_000) })
    const headers = { 'content-type': 'application/json' }
    const sent = await resultOf(send(`${OWNER_ORIGIN}/api/echo?q=1`, { method: 'POST', body, headers }))
    expect(sent).toEqual({ body, type: 'application/json' })
    expect((await client().api.echo.$delete()).status).toBe(204)
  })

  it('GU-23 goes where the running host says that it listens', async () => {
    const elsewhere = join(paths.dir, 'other.sock')
    await listen(elsewhere)
    await writeFile(paths.hostFile, JSON.stringify({ pid: 1, socket: elsewhere }))
    expect(await resultOf(client().api.echo.$get())).toMatchObject({ host: 'localhost' })
  })

  it("gives the host's refusals as they are", async () => {
    await listen()
    const refused = resultOf(client().api.refused.$get())
    await expect(refused).rejects.toMatchObject({
      code: 'not_found',
      message: 'There is no such thing.',
      hint: 'Look.',
      data: { a: 1 },
    })
    const newer = resultOf(client().api.newer.$get())
    await expect(newer).rejects.toMatchObject({ code: 'internal_error', message: 'Later.' })
    const broken = resultOf(createOwnerFetch(paths)(`${OWNER_ORIGIN}/api/broken`))
    await expect(broken).rejects.toMatchObject({ code: 'internal_error', message: expect.stringContaining('500') })
  })

  it('says how to start a host where none runs', async () => {
    const absent = { code: 'upstream_unavailable', hint: `Start it with \`kiki start --home ${paths.dir}\`.` }
    await expect(client().api.echo.$get()).rejects.toMatchObject(absent)
    await writeFile(paths.socket, '')
    await expect(client().api.echo.$get()).rejects.toMatchObject(absent)
  })

  it('follows a stream as it comes and lets go of it', async () => {
    await listen()
    const stop = new AbortController()
    const answer = await createOwnerFetch(paths)(`${OWNER_ORIGIN}/api/events`, { signal: stop.signal })
    const reader = answer.body?.getReader()
    const first = await reader?.read()
    expect(Buffer.from(first?.value ?? []).toString()).toContain('data: first')
    const rest = reader?.read()
    stop.abort()
    await expect(rest).rejects.toThrow()
    expect(await closed.promise).toBe('closed')
  })
})

it('an id that would make another request of its route is refused before anything is sent', async () => {
  const ask = createOwnerFetch(paths)
  for (const id of ['..', '.', '../..']) {
    await expect(ask(`${OWNER_ORIGIN}/api/processes/${id}/stop`, { method: 'POST' })).rejects.toMatchObject({
      code: 'invalid_arguments',
    })
  }
})
