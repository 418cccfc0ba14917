import type { Socket } from 'node:net'

/** One HTTP answer, read to its end. */
export interface HttpAnswer {
  status: number
  body: string
  /** Whether the connection takes another request. */
  keepAlive: boolean
  /** Bytes after the answer; after a 101 the beginning of the new protocol. */
  rest: Buffer
}

const MAX_ANSWER_BYTES = 64 * 1024

/** The other side closed the connection, or spoke no HTTP, before its answer was complete. */
export class BrokenAnswer extends Error {}

/**
 * One request and its answer (RFC 9112: with Content-Length, chunked, or up to the close) over a connected or connecting socket, which
 * is left paused. Node's own client would do, but its first request costs 10 ms, a tenth of the bridge's start (SP-01).
 * @throws the socket's error, {@link BrokenAnswer}, or `late` after `timeoutMs`; the socket is destroyed then.
 */
export function exchange(socket: Socket, request: string, timeoutMs: number, late: () => Error): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0)
    const settle = (result: HttpAnswer | Error) => {
      clearTimeout(timer)
      socket.off('data', onData).off('error', settle).off('close', onClose).pause()
      if (!(result instanceof Error)) return resolve(result)
      // Whatever else happens to it is of no interest.
      socket.on('error', () => {}).destroy()
      reject(result)
    }
    const look = (closed: boolean) => {
      const answer = parseAnswer(received, closed)
      if (answer) settle(answer)
      else if (closed || received.length > MAX_ANSWER_BYTES) settle(new BrokenAnswer('The answer is not complete.'))
    }
    const onData = (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      look(false)
    }
    const onClose = () => look(true)
    const timer = setTimeout(() => settle(late()), timeoutMs)
    socket.on('data', onData).on('error', settle).on('close', onClose).resume()
    socket.write(request)
  })
}

/** @returns undefined while there is too little; `closed` says that nothing more will come. */
export function parseAnswer(bytes: Buffer, closed: boolean): HttpAnswer | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const [statusLine = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n')
  const status = Number(/^HTTP\/1\.[01] ([0-9]{3})(?: |$)/.exec(statusLine)?.[1])
  if (Number.isNaN(status)) return undefined
  const headers = new Map(lines.map((line) => headerOf(line)))
  const keepAlive = statusLine.startsWith('HTTP/1.1') && headers.get('connection')?.toLowerCase() !== 'close'
  const content = bytes.subarray(end + 4)
  if (status === 101) return { status, body: '', keepAlive: false, rest: content }
  if (/\bchunked$/i.test(headers.get('transfer-encoding') ?? '')) {
    const chunks = readChunks(content)
    return chunks && { status, body: chunks.body.toString('utf8'), keepAlive, rest: chunks.rest }
  }
  const length = headers.get('content-length')
  if (length === undefined) {
    return closed ? { status, body: content.toString('utf8'), keepAlive: false, rest: Buffer.alloc(0) } : undefined
  }
  const size = Number(length)
  if (content.length < size) return undefined
  return { status, body: content.toString('utf8', 0, size), keepAlive, rest: content.subarray(size) }
}

function headerOf(line: string): [string, string] {
  const colon = line.indexOf(':')
  return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
}

function readChunks(bytes: Buffer): { body: Buffer; rest: Buffer } | undefined {
  const parts: Buffer[] = []
  for (let at = 0; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at)
    if (lineEnd < 0) return undefined
    const size = Number.parseInt(bytes.toString('latin1', at, lineEnd), 16)
    const next = lineEnd + 2 + size + 2
    if (Number.isNaN(size) || bytes.length < next) return undefined
    // Trailers are not asked for, so the last chunk is followed by an empty line at once.
    if (size === 0) return { body: Buffer.concat(parts), rest: bytes.subarray(next) }
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = next
  }
}
