import { request } from 'node:http'

export interface Watcher {
  /** What came so far. */
  events: { event: string; data: Record<string, unknown> }[]
  /** Resolves with the first event from now on, or so far unread, that fits. */
  next(fits: (event: string, data: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>
  /** Resolves when the host has ended the stream. */
  ended: Promise<void>
  close(): Promise<void>
}

/** A subscriber of the owner's event stream; with `approvals` it takes questions (AP-01). */
export async function watch(socketPath: string, approvals = true): Promise<Watcher> {
  const events: Watcher['events'] = []
  let waiters: (() => void)[] = []
  let read = 0
  const path = `/api/events${approvals ? '?approvals=1' : ''}`
  const sent = request({ socketPath, path, headers: { host: 'localhost' } }).end()
  const answer = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
    sent.on('response', resolve)
    sent.on('error', reject)
  })
  if (answer.statusCode !== 200) throw new Error(`the event stream answered ${answer.statusCode}`)
  sent.on('error', () => {})
  let rest = ''
  answer.setEncoding('utf8').on('data', (text: string) => {
    const parts = (rest + text).split('\n\n')
    rest = parts.pop() ?? ''
    for (const part of parts) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(part)?.[1] ?? ''
      events.push({ event: field('event'), data: JSON.parse(field('data') || '{}') as Record<string, unknown> })
    }
    for (const wake of waiters.splice(0)) wake()
  })
  answer.on('error', () => {})
  const ended = new Promise<void>((resolve) => answer.once('close', () => resolve()))
  const watcher: Watcher = {
    events,
    ended,
    async next(fits) {
      for (;;) {
        for (; read < events.length; read++) {
          const found = events[read]
          if (found === undefined || !fits(found.event, found.data)) continue
          read++
          return found.data
        }
        await Promise.race([
          new Promise<void>((resolve) => waiters.push(resolve)),
          ended.then(() => Promise.reject(new Error('the event stream has ended'))),
        ])
      }
    },
    async close() {
      waiters = []
      answer.destroy()
      await ended
    },
  }
  await watcher.next((event) => event === 'ready')
  return watcher
}
