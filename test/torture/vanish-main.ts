import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { callApi } from '../helpers/host.js'
import type { TortureOptions, TortureResult } from './main.js'
import { createWorld, type FaultyHost, grant, heapOf, inspectCounts, spawnHost, startFaulty, stop } from './world.js'

/** Growth of the heap in use after a collection that is still called flat, in MiB: caches that fill up. A leak of 2 KiB a cycle shows. */
const HEAP_MIB = 4
/** Cycles before the first measurement. */
const WARM_UP = 200

interface Size {
  handles: number
  /** MiB in use after a collection. */
  heap: number
}

/** GU-65: clients that speak the upgrade, open their stream, begin a call, and are gone. */
export async function main({ cycles, say }: Pick<TortureOptions, 'cycles' | 'say'>): Promise<TortureResult> {
  const world = createWorld()
  try {
    const host = await startFaulty(world, undefined, spawnHost(world, undefined, ['--expose-gc']))
    if (host === undefined) throw new Error('the host did not start')
    const place = await grant(host, world)
    for (let i = 0; i < WARM_UP; i++) await vanish(host, place, i)
    const before = await settled(host)
    for (let i = 0; i < cycles; i++) {
      await vanish(host, place, i)
      if ((i + 1) % 1000 === 0) say(`${i + 1} cycles: ${JSON.stringify(await sizeOf(host))}`)
    }
    const after = await settled(host)
    await stop(host)
    const { attachments } = inspectCounts(world)
    const growth = after.heap - before.heap
    const faults: string[] = []
    if (after.handles > before.handles) faults.push(`open files went from ${before.handles} to ${after.handles}`)
    if (growth > HEAP_MIB) faults.push(`the heap grew by ${growth.toFixed(1)} MiB`)
    if (attachments > 0) faults.push(`${attachments} attachments were left`)
    return {
      figures: [
        ['connect-and-vanish cycles', cycles],
        ['open files of the host, before and after', `${before.handles} and ${after.handles}`],
        ['heap of the host in use in MiB, before and after', `${before.heap.toFixed(1)} and ${after.heap.toFixed(1)}`],
        ['attachments left', attachments],
      ],
      faults,
    }
  } finally {
    world.close()
  }
}

type Place = Awaited<ReturnType<typeof grant>>

const INITIALIZE =
  '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"ghost","version":"1"}}}\n'
const resume = (session: string) =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"kiki_session","arguments":{"action":"resume","session_ref":"${session}"}}}\n`

/** One client; it goes at one of four moments: before its credential is used, at the upgrade, attached and idle, while it is being attached. */
async function vanish(host: FaultyHost, { connection, session }: Place, i: number): Promise<void> {
  const bridge = `bridge_ghost${String(i).padStart(8, '0')}`
  const { credential } = await callApi<{ credential: string }>(host.socket, 'POST', '/api/bridge/credential', {
    client: connection,
    bridge,
  })
  const socket = connect(host.socket)
  await once(socket, 'connect')
  if (i % 4 === 0) return gone(socket)
  socket.write(
    `GET /bridge HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: kiki-bridge\r\nAuthorization: Bearer ${credential}\r\n\r\n`,
  )
  if (i % 4 === 1) return gone(socket)
  await once(socket, 'data')
  socket.write(INITIALIZE)
  await once(socket, 'data')
  socket.write(resume(session))
  if (i % 4 === 2) await once(socket, 'data')
  await gone(socket)
}

async function gone(socket: Socket): Promise<void> {
  const closed = once(socket, 'close')
  socket.destroy()
  await closed
}

async function sizeOf(host: FaultyHost): Promise<Size> {
  return { handles: readdirSync(`/proc/${host.child.pid}/fd`).length, heap: await heapOf(host) }
}

/** What the host holds once it has noticed that everybody is gone: it has answered, and two looks in a row are alike. */
async function settled(host: FaultyHost): Promise<Size> {
  for (let last = -1; ; ) {
    await callApi(host.socket, 'GET', '/api/connections')
    const size = await sizeOf(host)
    if (size.handles === last) return size
    last = size.handles
  }
}
