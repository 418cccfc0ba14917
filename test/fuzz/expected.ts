/** How many answers a client may see under one id, from what it sent. */
export interface Expected {
  least: number
  most: number
}

/** What MCP and JSON-RPC 2.0 ask for, read from the lines that were sent and from nothing of Kiki's. */
export interface Ledger {
  /** Takes bytes that were sent as one or more lines. */
  sent(bytes: Buffer): void
  /** By the id as JSON text. */
  expected: ReadonlyMap<string, Expected>
}

/** Answered only when their subscription ends (MCP 2026-07-28). */
const ENDLESS = ['subscriptions/listen']

export function createLedger(): Ledger {
  const expected = new Map<string, Expected>()
  const cancelled = new Set<string>()
  const add = (id: string, least: number) => {
    const before = expected.get(id) ?? { least: 0, most: 0 }
    expected.set(id, { least: cancelled.has(id) ? 0 : before.least + least, most: before.most + 1 })
  }
  return {
    expected,
    sent(bytes) {
      for (const line of linesOf(bytes)) {
        const message = parse(line)
        // What is no JSON may be answered under an id that can be seen in it.
        if (message === undefined) for (const id of idsSeen(line)) add(id, 0)
        if (typeof message !== 'object' || message === null || Array.isArray(message)) continue
        const { jsonrpc, id, method, params } = message as Record<string, unknown>
        const isRequest = jsonrpc === '2.0' && typeof method === 'string'
        if (isUsable(id)) {
          const key = JSON.stringify(id)
          // What is too deep to be read is refused under no id while its own is another request's.
          const isFree = !expected.has(key) || !isDeep(line)
          add(key, isRequest && isFree && !ENDLESS.includes(method) ? 1 : 0)
        }
        // Whoever cancels a request need not be answered any more.
        const named = (params as Record<string, unknown> | undefined | null)?.requestId
        if (method !== 'notifications/cancelled' || !isUsable(named)) continue
        const key = JSON.stringify(named)
        cancelled.add(key)
        const before = expected.get(key)
        if (before !== undefined) expected.set(key, { ...before, least: 0 })
      }
    },
  }
}

const isUsable = (id: unknown): id is string | number => typeof id === 'string' || Number.isSafeInteger(id)

/** A line of the size and the nesting that a bridge does not read. */
function isDeep(line: Buffer): boolean {
  if (line.length <= 64 * 1024) return false
  let depth = 0
  let deepest = 0
  for (const sign of line.toString('latin1').replace(/"(?:[^"\\]|\\.)*"/g, '')) {
    if (sign === '{' || sign === '[') deepest = Math.max(deepest, ++depth)
    else if (sign === '}' || sign === ']') depth--
  }
  return deepest > 1000
}

function idsSeen(line: Buffer): string[] {
  const found = line.toString('utf8').matchAll(/"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d+)/g)
  return [...found].flatMap(([, id = '']) => {
    const value = parse(Buffer.from(id))
    return isUsable(value) ? [JSON.stringify(value)] : []
  })
}

function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = []
  let from = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, from)) {
    lines.push(bytes.subarray(from, at))
    from = at + 1
  }
  return [...lines, bytes.subarray(from)]
}

function parse(line: Buffer): unknown {
  try {
    return JSON.parse(line.toString('utf8'))
  } catch {
    return undefined
  }
}
