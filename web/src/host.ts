import { ApiError, getStatus, type HostStatus, signIn, signOut } from './api.js'
import { pageSecret, shareWithTabs } from './page-secret.js'
import { createPoll } from './poll.js'
import { createStore } from './store.js'

/** What the page knows of the host. */
export type HostState =
  | { kind: 'asking' }
  /** `kept`: not by the person's wish, so what stood on the page waits behind it. */
  | { kind: 'signed_out'; kept: boolean; why?: string }
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
  const store = createStore<HostState>({ kind: 'asking' })
  let code: string | undefined
  const backoff = createBackoff()
  const poll = createPoll(turn)
  const tabs = shareWithTabs(poll.wake)

  async function turn(): Promise<number | undefined> {
    const given = code
    code = undefined
    const secret = pageSecret.get()
    try {
      if (given !== undefined) {
        await signIn(given)
        tabs.announce()
      }
      const status = await getStatus()
      // Signed out while the answer was on its way.
      if (pageSecret.get() === null) return undefined
      store.set({ kind: 'here', status })
      backoff.reset()
      return POLL_MS
    } catch (error) {
      const changed = pageSecret.get() !== secret
      if (!(error instanceof ApiError) || error.status >= 500) {
        // A code that got no answer may still be good.
        if (!changed) code ??= given
        store.set(away(store.get()))
        return backoff.next()
      }
      // Another tab signed in meanwhile.
      if (given === undefined && changed) return 0
      store.set(signedOut(store.get(), given === undefined ? undefined : error))
      return undefined
    }
  }

  return {
    state: store.get,
    subscribe: store.subscribe,
    signIn(given) {
      code = given
      poll.wake()
    },
    async signOut(everywhere) {
      poll.stop()
      try {
        await signOut(everywhere)
        store.set({ kind: 'signed_out', kept: false })
      } catch {
        // Nothing was ended, or it had ended before: the next answer shows which.
        poll.wake()
      }
    },
  }
}

function away(before: HostState): HostState {
  return { kind: 'away', status: 'status' in before ? before.status : undefined }
}

function createBackoff() {
  let ms = FIRST_RETRY_MS
  return {
    reset: () => {
      ms = FIRST_RETRY_MS
    },
    next(): number {
      const now = ms
      ms = Math.min(ms * 2, LAST_RETRY_MS)
      return now
    },
  }
}

function signedOut(before: HostState, error: ApiError | undefined): HostState {
  const kept = before.kind === 'signed_out' ? before.kept : before.kind !== 'asking'
  if (error === undefined) return { kind: 'signed_out', kept }
  // The page itself says how to sign in; only how long to wait is not known here.
  const hint = error.status === 429 ? error.hint : undefined
  return { kind: 'signed_out', kept, why: [error.message, hint].filter(Boolean).join(' ') }
}
