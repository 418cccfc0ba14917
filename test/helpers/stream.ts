import { connect, type Socket } from 'node:net'
import type { Answer } from '../bridge/raw-client.js'
import { callApi } from './host.js'

/** A bridge stream as the host serves it, without a bridge process before it. */
export interface Stream {
  credential: string
  messages: Answer[]
  send(message: object | string): void
  /** The answer to a request, also one that came before; undefined when the stream ended without it. */
  answer(id: string | number): Promise<Answer | undefined>
  /** Resolves when the host has ended it. */
  ended: Promise<void>
  close(): void
}

const INITIALIZE = {
  jsonrpc: '2.0',
  id: 'init',
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'stream', version: '1' } },
}

/** Asks for a credential, opens a stream with it and initializes it (2025 era). */
export async function openStream(
  socketPath: string,
  { connection, session, bridge }: { connection: string; session?: string; bridge: string },
): Promise<Stream> {
  const { credential } = await callApi<{ credential: string }>(socketPath, 'POST', '/api/bridge/credential', {
    client: connection,
    bridge,
  })
  const { status, socket } = await upgrade(socketPath, credential, session)
  if (status !== 101) throw new Error(`the stream was refused with ${status}`)
  const messages: Answer[] = []
  const waiters = new Set<() => void>()
  const wake = () => {
    for (const check of waiters) check()
  }
  let over = false
  const ended = new Promise<void>((resolve) => {
    socket.on('close', () => {
      over = true
      resolve()
      wake()
    })
  })
  socket.on('error', () => {})
  let rest = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    messages.push(...lines.map((line) => JSON.parse(line) as Answer))
    wake()
  })
  const stream: Stream = {
    ...{ credential, messages, ended },
    send: (message) => void socket.write(typeof message === 'string' ? message : `${JSON.stringify(message)}\n`),
    answer: (id) =>
      new Promise((resolve) => {
        const check = () => {
          const found = messages.find((message) => message.id === id && message.method === undefined)
          if (found === undefined && !over) return
          waiters.delete(check)
          resolve(found)
        }
        waiters.add(check)
        check()
      }),
    close: () => void socket.destroy(),
  }
  stream.send(INITIALIZE)
  await stream.answer('init')
  stream.send({ jsonrpc: '2.0', method: 'notifications/initialized' })
  return stream
}

/** Asks the local socket for a bridge stream with a credential. @returns the status, and what is then a stream. */
export function upgrade(
  socketPath: string,
  credential: string,
  session?: string,
): Promise<{ status: number; socket: Socket }> {
  return new Promise((resolve, reject) => {
    const socket = connect(socketPath)
    socket.on('error', reject)
    socket.once('data', (head: Buffer) => {
      socket.off('error', reject)
      resolve({ status: Number(head.toString('latin1').split(' ')[1]), socket })
    })
    const target = session === undefined ? '/bridge' : `/bridge?session=${session}`
    socket.write(
      `GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: kiki-bridge\r\nAuthorization: Bearer ${credential}\r\n\r\n`,
    )
  })
}
