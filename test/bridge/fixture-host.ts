import { randomUUID } from 'node:crypto'
import { appendFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { McpServer } from '@modelcontextprotocol/server'
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio'
import { z } from 'zod'

/** A host as the bridge sees it: credentials, streams served by the real SDK, and a record of what arrived. */
export interface FixtureHost {
  socket: string
  /** Each stream that was opened: its URL and who asked for its credential. */
  streams: { url: string; client: string; bridge: string }[]
  /** Methods of the requests and notifications that arrived, in order, over all streams. */
  received: string[]
  connections: Set<Socket>
  /** As a crash: every stream ends at once. The host file stays. */
  kill(): Promise<void>
  /** As `kiki stop`: streams end the friendly way first. */
  stop(): Promise<void>
  /** Resolves once `method` has arrived `times` times. */
  saw(method: string, times?: number): Promise<void>
  toolsChanged(): void
}

export interface FixtureOptions {
  home: string
  /** File that every `effect` call appends its key to. */
  effects?: string
  socketName?: string
  /** The tool `later` has its effect when this resolves, and then calls `done`. */
  gate?: { open: Promise<void>; done(): void }
  /** Answers every credential request like this instead. */
  refuse?: { status: number; body: unknown }
}

export const GOOD_CLIENT = 'client_good'

export async function startFixtureHost(options: FixtureOptions): Promise<FixtureHost> {
  const socket = join(options.home, options.socketName ?? 'kiki.sock')
  rmSync(socket, { force: true })
  const credentials = new Map<string, { client: string; bridge: string }>()
  const servers = new Set<McpServer>()
  const closers = new Set<() => Promise<void>>()
  const watchers = new Set<() => void>()
  const host: FixtureHost = {
    socket,
    streams: [],
    received: [],
    connections: new Set(),
    async kill() {
      for (const connection of host.connections) connection.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
    async stop() {
      for (const close of closers) await close()
      await host.kill()
      rmSync(join(options.home, 'host.json'), { force: true })
    },
    saw: (method, times = 1) =>
      new Promise((resolve) => {
        const check = () => {
          if (host.received.filter((seen) => seen === method).length < times) return
          watchers.delete(check)
          resolve()
        }
        watchers.add(check)
        check()
      }),
    toolsChanged() {
      for (const one of servers) one.sendToolListChanged()
    },
  }
  const server = createServer((request, response) => answerCredential(options, credentials, request, response))
  server.on('connection', (connection) => {
    host.connections.add(connection)
    connection.on('close', () => host.connections.delete(connection))
  })
  server.on('upgrade', (request, raw) => {
    const stream = raw as Socket
    const token = (request.headers.authorization ?? '').replace('Bearer ', '')
    const grant = credentials.get(token)
    credentials.delete(token)
    if (!grant || request.headers.upgrade !== 'kiki-bridge') return void stream.end('HTTP/1.1 401 Unauthorized\r\n\r\n')
    const url = request.url ?? ''
    if (url.includes('session=ext_gone')) {
      const body = JSON.stringify({
        error: { code: 'session_unavailable', message: 'No such session.', hint: 'Make one.' },
      })
      stream.end(`HTTP/1.1 404 Not Found\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`)
      return
    }
    host.streams.push({ url, ...grant })
    stream.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: kiki-bridge\r\n\r\n')
    stream.on('error', () => {})
    // The SDK adds listeners for every message that waits for a slow reader.
    stream.setMaxListeners(0)
    record(stream, (method) => {
      host.received.push(method)
      for (const check of watchers) check()
    })
    const handle = serveStdio(
      () => {
        const one = makeServer(options)
        servers.add(one)
        return one
      },
      {
        transport: new StdioServerTransport(stream, stream, { maxBufferSize: 64 * 1024 * 1024 }),
      },
    )
    closers.add(handle.close)
  })
  await new Promise<void>((resolve) => server.listen(socket, resolve))
  writeFileSync(join(options.home, 'host.json'), JSON.stringify({ pid: process.pid, socket }))
  return host
}

function answerCredential(
  options: FixtureOptions,
  credentials: Map<string, { client: string; bridge: string }>,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const reply = (status: number, body: unknown) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    }
    if (options.refuse) return reply(options.refuse.status, options.refuse.body)
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { client: string; bridge: string }
    if (body.client !== GOOD_CLIENT) {
      return reply(403, {
        error: { code: 'connection_revoked', message: 'This connection was revoked.', hint: 'Add a new one.' },
      })
    }
    const credential = randomUUID()
    credentials.set(credential, body)
    reply(200, { credential })
  })
}

function record(stream: Socket, seen: (method: string) => void): void {
  let rest = ''
  stream.on('data', (chunk: Buffer) => {
    const lines = (rest + chunk.toString()).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const message = JSON.parse(line) as { method?: string; params?: { name?: string } }
      seen(message.method === 'tools/call' ? `tools/call ${message.params?.name}` : (message.method ?? 'answer'))
    }
  })
}

const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] })

function makeServer(options: FixtureOptions): McpServer {
  const server = new McpServer(
    { name: 'fixture', version: '1' },
    { capabilities: { tools: { listChanged: true }, logging: {} } },
  )
  server.registerTool('echo', { inputSchema: z.object({ message: z.string() }) }, ({ message }) => text(message))
  server.registerTool('length', { inputSchema: z.object({ message: z.string() }) }, ({ message }) =>
    text(String(message.length)),
  )
  server.registerTool('big', { inputSchema: z.object({ bytes: z.number() }) }, ({ bytes }) => text('x'.repeat(bytes)))
  server.registerTool('hang', {}, () => new Promise<never>(() => {}))
  server.registerTool('effect', { inputSchema: z.object({ key: z.string() }) }, ({ key }) => {
    appendFileSync(options.effects ?? '', `${key}\n`)
    return new Promise<never>(() => {})
  })
  server.registerTool('later', { inputSchema: z.object({ key: z.string() }) }, async ({ key }) => {
    await options.gate?.open
    appendFileSync(options.effects ?? '', `${key}\n`)
    options.gate?.done()
    return text('done')
  })
  server.registerTool('ask', {}, async () => {
    await server.server.ping()
    return text('the client answered')
  })
  return server
}
