import { ApiError, getStatus, type HostStatus, signIn, signOut } from './api.js'
import { pageSecret, shareWithTabs } from './page-secret.js'

/** What the page knows of the host. */
export type HostState =
  | { kind: 'asking' }
  | { kind: 'signed_out'; why?: string }
  | { kind: 'here'; status: HostStatus }
  /** It does not answer; `status` is the last that was known. */
  | { kind: 'away'; status: HostStatus | undefined }

export interface Host {
  state(): HostState
  subscribe(onChange: () => void): () => void
  /** Begins, with the login code if there is one. */
  signIn(code: string | undefined): void
  signOut(everywhere: boolean): Promise<void>
}

const POLL_MS = 3_000
const FIRST_RETRY_MS = 500
const LAST_RETRY_MS = 10_000

/** Asks the host how it is, every 3 s while the page is looked at; slower and slower, up to 10 s, while it is away. */
export function watchHost(): Host {
  let state: HostState = { kind: 'asking' }
  let code: string | undefined
  let retryMs = FIRST_RETRY_MS
  let timer: ReturnType<typeof setTimeout> | undefined
  let asking = false
  let wakeAgain = false
  const listeners = new Set<() => void>()
  const tabs = shareWithTabs(() => wake())

  function become(next: HostState): void {
    state = next
    for (const listener of listeners) listener()
  }

  async function ask(given: string | undefined): Promise<HostState> {
    if (given !== undefined) {
      await signIn(given)
      tabs.announce()
    }
    return { kind: 'here', status: await getStatus() }
  }

  async function turn(): Promise<void> {
    asking = true
    const given = code
    code = undefined
    const secret = pageSecret.get()
    try {
      become(await ask(given))
      retryMs = FIRST_RETRY_MS
      next(POLL_MS)
    } catch (error) {
      if (error instanceof ApiError && error.status < 500) {
        // Refused: only `kiki open` helps, unless another tab signed in meanwhile.
        if (given === undefined && pageSecret.get() !== secret) next(0)
        else become(given === undefined ? { kind: 'signed_out' } : { kind: 'signed_out', why: wordsOf(error) })
      } else {
        // A code that got no answer may still be good.
        code ??= pageSecret.get() === secret ? given : undefined
        become({ kind: 'away', status: 'status' in state ? state.status : undefined })
        next(retryMs)
        retryMs = Math.min(retryMs * 2, LAST_RETRY_MS)
      }
    } finally {
      asking = false
      if (wakeAgain) next(0)
      wakeAgain = false
    }
  }

  function next(ms: number): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (document.visibilityState === 'visible') void turn()
    }, ms)
  }
  function wake(): void {
    if (asking) wakeAgain = true
    else next(0)
  }

  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible' && state.kind !== 'signed_out') wake()
  })
  window.addEventListener('online', () => wake())

  return {
    state: () => state,
    subscribe(onChange) {
      listeners.add(onChange)
      return () => listeners.delete(onChange)
    },
    signIn(given) {
      code = given
      wake()
    },
    async signOut(everywhere) {
      clearTimeout(timer)
      await signOut(everywhere)
      become({ kind: 'signed_out' })
    },
  }
}

function wordsOf(error: ApiError): string {
  return error.hint === undefined ? error.message : `${error.message} ${error.hint}`
}
