import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { callApi } from '../helpers/host.js'
import { createRandom } from '../helpers/random.js'
import { grant } from '../torture/world.js'
import type { RunOptions } from './bridge-run.js'
import type { FuzzWorld } from './fuzz-world.js'
import { type Decoys, type FuzzRequest, requestOf, type Target } from './requests.js'

const BATCH = 200
const PARALLEL = 16
/** A request of which no more comes is answered or dropped within this, in milliseconds, on a busy machine. */
const ANSWERED_MS = 20_000

/** GU-66 with requests of the owner API, half of them over the local socket. @returns how many were sent. */
export async function fuzzOwnerApi(fuzz: FuzzWorld, { inputs, seed, say }: RunOptions): Promise<number> {
  const random = createRandom(seed)
  const { host: address } = new URL(fuzz.ownerUrl)
  for (let sent = 0; ; ) {
    if (sent >= inputs) return sent
    const decoys = await decoysIn(fuzz)
    const requests = Array.from({ length: BATCH }, (_, i) => {
      const channel: Target['channel'] = i % 2 === 0 ? 'socket' : 'listener'
      return { channel, request: requestOf(random, decoys, { channel, host: address, token: fuzz.ownerToken }) }
    })
    const queue = requests.values()
    const worker = async () => {
      for (const { channel, request } of queue)
        judge(fuzz, channel, request, await exchange(fuzz, channel, request.bytes))
    }
    await Promise.all(Array.from({ length: PARALLEL }, worker))
    sent += BATCH
    await fuzz.check(`owner API, seed ${seed}, request ${sent}`)
    if (sent % 5000 === 0) say(`${sent} requests`)
  }
}

/** Something that every request of a batch may break. */
async function decoysIn(fuzz: FuzzWorld): Promise<Decoys> {
  const { connection, session } = await grant(fuzz.host, fuzz.world, { ceiling: 'manual' })
  const { operations } = await callApi<{ operations: { id: string }[] }>(
    fuzz.host.socket,
    'GET',
    '/api/operations?limit=1',
  )
  return {
    connection,
    session,
    operation: operations[0]?.id ?? 'op_none',
    workspace: fuzz.world.workspace,
    backups: join(fuzz.world.base, 'backups'),
  }
}

/** Sends the bytes and no more. @returns the beginning of what comes, or `nothing` when the time is over. */
async function exchange({ host, ownerUrl }: FuzzWorld, channel: Target['channel'], bytes: Buffer): Promise<string> {
  const socket = channel === 'socket' ? connect(host.socket) : connect(Number(new URL(ownerUrl).port), '127.0.0.1')
  try {
    return await answerTo(socket, bytes)
  } finally {
    socket.destroy()
  }
}

function answerTo(socket: Socket, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    socket.setTimeout(ANSWERED_MS, () => resolve('nothing'))
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('latin1')
      // A stream never ends by itself.
      if (text.includes('\r\n\r\n') && !/^HTTP\/1\.1 100/.test(text)) resolve(text)
    })
    socket.on('error', () => resolve(text))
    socket.on('close', () => resolve(text))
    socket.end(bytes)
  })
}

function judge({ faults }: FuzzWorld, channel: Target['channel'], request: FuzzRequest, given: string): void {
  const answer = given.replace('HTTP/1.1 100 Continue\r\n\r\n', '')
  const told = () =>
    `${channel}: ${JSON.stringify(request.bytes.toString('latin1').slice(0, 900))}: ${answer.slice(0, 300)}`
  if (answer === 'nothing') faults.push(`no answer and no end: ${told()}`)
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1] ?? 0)
  if (status === 500 || answer.includes('{"error":{"code":"internal_error"')) faults.push(`a bug: ${told()}`)
  if (/^access-control/im.test(answer)) faults.push(`a CORS header: ${told()}`)
  if (!request.authorised && request.intact && status >= 200 && status < 400) faults.push(`done for nobody: ${told()}`)
}
