import { randomBytes } from 'node:crypto'
import dns from 'node:dns'
import { BlockList, connect, isIP, type Socket } from 'node:net'
import { RequestError, Server } from 'proxy-chain'
import { sha256 } from '../lib/json.js'
import type { Log } from '../lib/log.js'

/** Names of hosts, `*.example.com` for all below one, each with `:port` or for every port; or anything. */
export type AllowedHosts = readonly string[] | 'any'

/** The way out of sandboxes that have a network of their own: an HTTP proxy that each allowed command has a password for. */
export interface SandboxNetwork {
  /** Variables by which a command finds the proxy at this port of its loopback, and what takes its password back. */
  allow(hosts: AllowedHosts, port: number): { env: Record<string, string>; revoke(): void }
  /** A connection from within a sandbox. */
  take(socket: Socket): void
  close(): Promise<void>
}

/** Never reached through the proxy but by name: what is on the machine itself, and what only links know. */
const OWN = new BlockList()
for (const [net, prefix, family] of [
  ['127.0.0.0', 8, 'ipv4'],
  ['0.0.0.0', 8, 'ipv4'],
  ['169.254.0.0', 16, 'ipv4'],
  ['::1', 128, 'ipv6'],
  ['::', 128, 'ipv6'],
  ['fe80::', 10, 'ipv6'],
  ['::ffff:127.0.0.0', 104, 'ipv6'],
  ['::ffff:169.254.0.0', 112, 'ipv6'],
] as const) {
  OWN.addSubnet(net, prefix, family)
}

export function createSandboxNetwork(log: Pick<Log, 'debug' | 'warn'>): SandboxNetwork {
  /** By the SHA-256 of a password. */
  const allowed = new Map<string, AllowedHosts>()
  let server: Promise<Server> | undefined

  function open(): Promise<Server> {
    server ??= start(allowed).catch((error: unknown) => {
      server = undefined
      throw error
    })
    return server
  }

  return {
    allow(hosts, port) {
      const password = randomBytes(24).toString('hex')
      const key = sha256(password)
      allowed.set(key, hosts)
      return {
        env: proxyVariables(`http://kiki:${password}@127.0.0.1:${port}`),
        revoke: () => void allowed.delete(key),
      }
    },
    take(socket) {
      open().then(
        ({ port }) => {
          const out = connect(port, '127.0.0.1')
          out.on('error', (error) => log.debug({ error: error.message }, 'the way out of a sandbox failed'))
          out.once('close', () => socket.destroy())
          socket.once('close', () => out.destroy())
          socket.pipe(out).pipe(socket)
        },
        (error: unknown) => {
          log.warn({ error: String(error) }, 'the proxy of sandboxes could not be started')
          socket.destroy()
        },
      )
    },
    async close() {
      await (await server)?.close(true)
    },
  }
}

async function start(allowed: Map<string, AllowedHosts>): Promise<Server> {
  const server = new Server({
    port: 0,
    host: '127.0.0.1',
    prepareRequestFunction({ hostname, port, password }) {
      const hosts = allowed.get(sha256(password))
      if (hosts === undefined) return { requestAuthentication: true }
      const listed = hosts !== 'any' && hosts.some((pattern) => matchesHost(pattern, hostname, port))
      if (!listed && hosts !== 'any') throw new RequestError(refusal(`${hostname}:${port}`), 403)
      if (!listed && isIP(hostname) !== 0 && isOwn(hostname)) throw new RequestError(refusal(hostname), 403)
      return listed ? {} : { dnsLookup: lookupElsewhere }
    },
  })
  await server.listen()
  return server
}

function refusal(host: string): string {
  return `Kiki: the network setting of this connection does not allow ${host}.`
}

/** Whether a host (and port) is one of a pattern's. Names are compared without regard to case and a final dot. */
export function matchesHost(pattern: string, hostname: string, port: number): boolean {
  const [, wanted = '', only] = /^(.*?)(?::(\d+))?$/.exec(pattern) ?? []
  if (only !== undefined && Number(only) !== port) return false
  const name = hostname.toLowerCase().replace(/\.$/, '')
  const host = wanted.toLowerCase().replace(/\.$/, '')
  return host.startsWith('*.') ? name.endsWith(host.slice(1)) && name.length > host.length - 1 : name === host
}

/** A name may lead to the machine itself: the address that is connected to counts, not the one that was asked for before. */
const lookupElsewhere = ((hostname: string, options: dns.LookupOptions, callback: (...args: unknown[]) => void) => {
  dns.lookup(hostname, options, (error, address, family) => {
    const all = typeof address === 'string' ? [address] : (address ?? []).map((one: dns.LookupAddress) => one.address)
    if (error === null && all.some(isOwn))
      return callback(Object.assign(new Error(refusal(hostname)), { code: 'EACCES' }))
    callback(error, address, family)
  })
}) as typeof dns.lookup

function isOwn(address: string): boolean {
  return OWN.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}

function proxyVariables(url: string): Record<string, string> {
  const own = 'localhost,127.0.0.1,::1'
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']
  return {
    ...Object.fromEntries(
      names.flatMap((name) => [
        [name, url],
        [name.toLowerCase(), url],
      ]),
    ),
    ...{ NO_PROXY: own, no_proxy: own, NODE_USE_ENV_PROXY: '1' },
  }
}
