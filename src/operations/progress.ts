import type { Live } from './live.js'

/** OP-09 asks for a sign of life at least every 10 s; half of it leaves room for a busy machine. */
const EVERY_MS = 5000
/** A talkative tool's lines are told at most this often; the latest one wins. */
const LEAST_GAP_MS = 250

/**
 * Tells a waiting caller what the operation does: the tool's own lines as they come and, at least every 10 s, the last of them or
 * what it is that is waited for, in words for a person (OP-09). Returns the function that ends this.
 */
export function reportProgress(live: Live, onProgress: ((message: string) => void) | undefined): () => void {
  if (onProgress === undefined) return () => {}
  const startedAt = performance.now()
  let toldAt = Number.NEGATIVE_INFINITY
  let late: NodeJS.Timeout | undefined
  const tell = () => {
    clearTimeout(late)
    late = undefined
    toldAt = performance.now()
    onProgress(live.lastProgress === '' ? waitingFor(live, toldAt - startedAt) : live.lastProgress)
  }
  const hear = () => {
    const left = LEAST_GAP_MS - (performance.now() - toldAt)
    if (left <= 0) tell()
    else late ??= setTimeout(tell, left)
  }
  const timer = setInterval(tell, EVERY_MS)
  live.listeners.add(hear)
  return () => {
    clearInterval(timer)
    clearTimeout(late)
    live.listeners.delete(hear)
  }
}

function waitingFor({ tool, row }: Live, ms: number): string {
  const time = `(${Math.round(ms / 1000)} s)`
  if (row.status === 'accepted') return `${tool} waits for its turn ${time}`
  if (row.status === 'waiting_approval') return `${tool} waits for the owner's approval ${time}`
  return `${tool} is still running ${time}`
}
