import type { Socket } from 'node:net'
import { INVALID_REQUEST, type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server'
import { createSplitter } from '../lib/json-lines.js'

const NEWLINE = 0x0a

/**
 * Newline-delimited JSON-RPC over a socket. The SDK's own stdio transport drops a request that its schema refuses (`params`
 * that is no object, an unknown member) without a word, and its client waits for ever: here every request with a usable id
 * is answered (JSON-RPC 2.0 §5.1). It also copies what has arrived of a long line at every chunk; this one does not.
 * @param maxBytes longest line; a longer one ends the connection.
 * @param takes sees every message first; true where it is dealt with.
 */
export function createLineTransport(
  socket: Socket,
  maxBytes: number,
  takes: (message: unknown) => boolean = () => false,
): Transport {
  let closed = false
  const lines = createSplitter({
    separator: NEWLINE,
    maxBytes,
    onPiece: (line) => {
      if (!closed) take(transport, line, takes)
    },
    onTooLong: () => {
      transport.onerror?.(new Error(`a line of more than ${maxBytes} bytes`))
      void transport.close()
    },
  })
  const onData = (chunk: Buffer) => lines.push(chunk)
  const onError = (error: Error) => transport.onerror?.(error)
  const onEnd = () => void transport.close()
  const transport: Transport = {
    async start() {
      socket.on('data', onData).on('error', onError).on('end', onEnd).on('close', onEnd)
    },
    async close() {
      if (closed) return
      closed = true
      // The error listener stays: a late write may still fail, and nobody else must die of it.
      socket.off('data', onData).off('end', onEnd).off('close', onEnd)
      transport.onclose?.()
    },
    send(message) {
      if (closed) return Promise.reject(new Error('The connection is closed.'))
      return new Promise((resolve, reject) => {
        socket.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()))
      })
    },
  }
  return transport
}

function take(transport: Transport, line: Buffer, takes: (message: unknown) => boolean): void {
  let value: unknown
  try {
    value = JSON.parse(line.toString('utf8'))
  } catch {
    return // The bridge has answered what is no JSON; an empty line is nothing.
  }
  if (takes(value)) return
  let message: JSONRPCMessage
  try {
    message = parseJSONRPCMessage(value)
  } catch (error) {
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
    refuse(transport, value)
    return
  }
  try {
    transport.onmessage?.(message)
  } catch (error) {
    transport.onerror?.(error instanceof Error ? error : new Error(String(error)))
  }
}

/** Answers a request that is none by the protocol's schema; what has no id cannot be answered, and a response need not be. */
function refuse(transport: Transport, value: unknown): void {
  if (typeof value !== 'object' || value === null || !('method' in value) || !('id' in value)) return
  const { id } = value
  if (typeof id !== 'string' && !Number.isSafeInteger(id)) return
  const message =
    'Not a valid request: besides "jsonrpc", "id" and "method" only "params" is known, which must be an object; its "_meta" too, with a string or an integer as "progressToken". Nothing was run.'
  transport
    .send({ jsonrpc: '2.0', id: id as string | number, error: { code: INVALID_REQUEST, message } })
    .catch((error: unknown) => transport.onerror?.(error instanceof Error ? error : new Error(String(error))))
}
