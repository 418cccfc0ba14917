import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { type Watcher, watch } from '../helpers/watcher.js'
import { type Bench, commandBench, operationOf, outputOf, textOf } from './command-bench.js'

let host: TestHost
let server: Server
let port: number
const benches: Bench[] = []

/** Asks for a page through the proxy that the environment names, as programs do that know proxies. */
const THROUGH = `
import { request } from 'node:http'
const proxy = process.env.HTTP_PROXY === undefined ? undefined : new URL(process.env.HTTP_PROXY)
if (proxy === undefined) console.log('no proxy')
else request({
  host: proxy.hostname, port: proxy.port, path: process.argv[2],
  headers: { host: new URL(process.argv[2]).host, 'proxy-authorization': 'Basic ' + btoa(proxy.username + ':' + (process.argv[3] ?? proxy.password)) },
}, (response) => {
  console.log(response.statusCode)
  response.pipe(process.stdout)
}).on('error', (error) => console.log(error.code)).end()
`

beforeAll(async () => {
  host = await startHost()
  writeFileSync(join(host.workspace, 'through.mjs'), THROUGH)
  server = createServer((_, response) => response.end('reached')).listen(0)
  await new Promise((resolve) => server.once('listening', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(async () => {
  for (const { client } of benches) await client.close()
  server.close()
  await host.stop()
})

async function bench(network: unknown): Promise<Bench> {
  const made = await commandBench(host, { sandbox: 'required', network, ceiling: 'full' })
  benches.push(made)
  return made
}

it('SB-01 GR-02 of listed hosts a command reaches those and no other, through a proxy with a password of its own', async () => {
  const at = await bench([`127.0.0.1:${port}`, '*.example.com'])
  const ask = async (url: string, password = '') => outputOf(await at.bash(`node through.mjs ${url} ${password}`))
  expect(await ask(`http://127.0.0.1:${port}/`)).toBe('200\nreached')
  expect(await ask(`http://127.0.0.1:${Number(new URL(host.ownerUrl).port)}/`)).toMatch(
    /^403\n.*does not allow 127\.0\.0\.1/s,
  )
  expect(await ask(`http://localhost:${port}/`)).toMatch(/^403\n/)
  expect(await ask('http://example.com/')).toMatch(/^403\n/)
  expect(await ask(`http://127.0.0.1:${port}/`, 'wrong')).toMatch(/^407\n/)
})

it('SB-01 where the network is off there is no proxy, and a command of a class that needs it asks', async () => {
  const at = await bench('off')
  expect(outputOf(await at.bash('node through.mjs http://127.0.0.1:1/'))).toBe('no proxy\n')
  const refused = await at.bash('curl http://example.com/')
  expect(textOf(refused)).toMatch(/^approval_unavailable: .*needs the network/)
})

it('SB-01 approved, that one command reaches the network, but not the loopback of the machine', async () => {
  const at = await bench('off')
  const watcher: Watcher = await watch(host.socket)
  try {
    // A program of the project stands in for one that needs the network.
    mkdirSync(join(host.workspace, 'bin'), { recursive: true })
    writeFileSync(join(host.workspace, 'bin/curl'), '#!/bin/sh\nexec node through.mjs "$@"\n', { mode: 0o755 })
    const run = async (url: string) => {
      const started = await at.bash(`bin/curl ${url}`, {}, { wait_ms: 0 })
      const { operation_id, status } = operationOf(started)
      expect(status).toBe('waiting_approval')
      const { approvalId } = await watcher.next(
        (event, data) => event === 'approval.changed' && data.operationId === operation_id,
      )
      await host.api('POST', `/api/approvals/${approvalId}/approve`, {})
      return outputOf(await at.client.call('kiki_operation', { action: 'wait', operation_id }))
    }
    expect(await run(`http://127.0.0.1:${port}/`)).toMatch(/^403\n/)
    expect(await run(`http://localhost:${port}/`)).not.toContain('reached')
    const outer = Object.values(networkInterfaces())
      .flat()
      .find((one) => one !== undefined && !one.internal && one.family === 'IPv4')
    if (outer !== undefined) expect(await run(`http://${outer.address}:${port}/`)).toBe('200\nreached')
    expect(outputOf(await at.bash('node through.mjs http://127.0.0.1:1/'))).toBe('no proxy\n')
  } finally {
    await watcher.close()
  }
})
