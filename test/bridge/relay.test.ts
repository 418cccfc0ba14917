import fc from 'fast-check'
import { afterEach, expect, it, vi } from 'vitest'
import { fromClient } from '../../src/bridge/from-client.js'
import { fromHost } from '../../src/bridge/from-host.js'
import { onConnected, onDisconnected } from '../../src/bridge/opening.js'
import { createRelay, type Relay } from '../../src/bridge/relay.js'

afterEach(() => {
  vi.useRealTimers()
})

interface Message {
  id?: string | number | null
  method?: string
  params?: Record<string, unknown>
  result?: unknown
  error?: { code: number; message: string }
}

function start() {
  const client: Message[] = []
  const host: Message[] = []
  let onClient = () => {}
  const relay: Relay = createRelay(
    {
      toClient(line) {
        client.push(JSON.parse(line.toString()) as Message)
        onClient()
      },
      toHost: (line) => void host.push(JSON.parse(line.toString()) as Message),
      note: () => {},
      fail(error) {
        throw error
      },
    },
    'bridge_1:',
    '/homes/of kiki',
  )
  const bytes = (message: object | string) =>
    Buffer.from(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`)
  return {
    ...{ relay, client, host },
    say: (message: object | string) => fromClient(relay, bytes(message)),
    hear: (message: object | string) => fromHost(relay, bytes(message)),
    clientHeard: () =>
      new Promise<void>((resolve) => {
        onClient = resolve
      }),
  }
}

const rpc = (message: object) => ({ jsonrpc: '2.0', ...message })
const subscription = { 'io.modelcontextprotocol/subscriptionId': 'sub' }
const acknowledged = rpc({
  method: 'notifications/subscriptions/acknowledged',
  params: { notifications: { toolsListChanged: true }, _meta: subscription },
})
const friendlyEnd = rpc({ id: 'sub', result: { resultType: 'complete', _meta: subscription } })

function listening() {
  const world = start()
  onConnected(world.relay)
  world.say(rpc({ id: 'sub', method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true } } }))
  world.hear(acknowledged)
  return world
}

it('GU-23 a subscription outlives its host: one acknowledgement, no end, and word of what may have been missed', () => {
  const { relay, client, host, hear } = listening()
  hear(friendlyEnd)
  onDisconnected(relay)
  onConnected(relay)
  expect(host.map((message) => [message.method, message.id])).toEqual([
    ['subscriptions/listen', 'sub'],
    ['subscriptions/listen', 'sub'],
  ])
  hear(acknowledged)
  expect(client).toEqual([
    acknowledged,
    rpc({ method: 'notifications/tools/list_changed', params: { _meta: subscription } }),
  ])
})

it('a subscription that the host ends while its stream stays is ended for the client', async () => {
  const { client, hear, clientHeard } = listening()
  hear(friendlyEnd)
  await clientHeard()
  expect(client.at(-1)).toEqual(friendlyEnd)
})

it('GU-23 a cancelled subscription is not taken up again', () => {
  const { relay, host, say } = listening()
  say(rpc({ method: 'notifications/cancelled', params: { requestId: 'sub' } }))
  onDisconnected(relay)
  onConnected(relay)
  expect(host.map((message) => message.method)).toEqual(['subscriptions/listen', 'notifications/cancelled'])
})

it('GU-23 an initialize that is still unanswered is asked again under its own id, and answered once', () => {
  const { relay, client, host, say, hear } = start()
  onConnected(relay)
  say(rpc({ id: 0, method: 'initialize', params: {} }))
  onDisconnected(relay)
  expect(client).toEqual([])
  onConnected(relay)
  hear(rpc({ id: 0, result: {} }))
  expect(host.map((message) => message.id)).toEqual([0, 0])
  expect(client).toEqual([rpc({ id: 0, result: {} })])
})

it('FC-T15 initialize is not cancelled while it waits for the host either', () => {
  const { relay, host, say } = start()
  say(rpc({ id: 0, method: 'initialize', params: {} }))
  say(rpc({ id: 1, method: 'ping' }))
  say(rpc({ method: 'notifications/cancelled', params: { requestId: 0 } }))
  say(rpc({ method: 'notifications/cancelled', params: { requestId: 1 } }))
  onConnected(relay)
  expect(host.map((message) => message.method)).toEqual(['initialize'])
})

it('GU-64 a late answer to a cancelled request passes once, an answer to nothing never', () => {
  const { relay, client, say, hear } = start()
  onConnected(relay)
  say(rpc({ id: 1, method: 'tools/call' }))
  say(rpc({ method: 'notifications/cancelled', params: { requestId: 1 } }))
  say(rpc({ id: 1, method: 'tools/call' }))
  expect(client.map((message) => message.error?.code)).toEqual([-32600])
  hear(rpc({ id: 1, result: 'late' }))
  hear(rpc({ id: 1, result: 'again' }))
  hear(rpc({ id: 2, result: 'nobody asked' }))
  expect(client.slice(1)).toEqual([rpc({ id: 1, result: 'late' })])
})

it('GU-23 GU-64 whatever happens, each request is answered at most once, and after a loss exactly once', () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant('say' as const), id: fc.nat(4), cancel: fc.boolean() }),
    fc.record({ do: fc.constant('answer' as const), id: fc.nat(4) }),
    fc.record({ do: fc.constantFrom('lose' as const, 'find' as const) }),
    fc.record({ do: fc.constant('noise' as const), text: fc.oneof(fc.string(), fc.json()), toHost: fc.boolean() }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const { relay, client, host, say, hear } = start()
      let connected = false
      for (const one of steps) {
        if (one.do === 'say' && one.cancel)
          say(rpc({ method: 'notifications/cancelled', params: { requestId: one.id } }))
        else if (one.do === 'say') say(rpc({ id: one.id, method: 'tools/call' }))
        else if (one.do === 'answer' && connected) hear(rpc({ id: one.id, result: 'answer' }))
        else if (one.do === 'noise' && one.toHost) say(`${one.text.replaceAll('\n', ' ')}\n`)
        else if (one.do === 'noise' && connected) hear(`${one.text.replaceAll('\n', ' ')}\n`)
        else if (one.do === 'lose' && connected) {
          connected = false
          onDisconnected(relay)
          expect(relay.pending.size).toBe(0)
        } else if (one.do === 'find' && !connected) {
          connected = true
          onConnected(relay)
        }
      }
      const sent = host.filter((message) => message.method === 'tools/call').length
      const answered = client.filter((message) => message.result === 'answer' || message.error?.code === -32000).length
      expect(answered).toBeLessThanOrEqual(sent)
      if (connected) onDisconnected(relay)
      for (const entry of relay.waiting) clearTimeout(entry.timer)
    }),
  )
})

it('GU-23 CL-10 a request that no host took says which host to start: that of its home', () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const { relay, client, say } = start()
  onConnected(relay)
  onDisconnected(relay)
  say(rpc({ id: 1, method: 'tools/list' }))
  vi.advanceTimersByTime(10_000)
  expect(client[0]?.error?.message).toContain("run `kiki start --home '/homes/of kiki'`, then restart")
})
