const KEY = 'kiki-page'

/** The header secret of this tab; storage is per origin, port included, where cookies are not. */
export const pageSecret = {
  get: (): string | null => sessionStorage.getItem(KEY),
  set: (secret: string): void => sessionStorage.setItem(KEY, secret),
  clear: (): void => sessionStorage.removeItem(KEY),
}

type Message = { kind: 'ask' } | { kind: 'secret'; secret: string }

/**
 * Tabs of this origin share the cookie, so they share the secret too: a tab that was signed out by a host restart goes
 * on, its forms untouched, as soon as `kiki open` has signed in another one.
 * @param onSecret a new secret came and is stored.
 */
export function shareWithTabs(onSecret: () => void): { announce(): void } {
  const channel = new BroadcastChannel(KEY)
  const send = (message: Message) => channel.postMessage(message)
  function announce(): void {
    const secret = pageSecret.get()
    if (secret !== null) send({ kind: 'secret', secret })
  }
  channel.onmessage = ({ data }: MessageEvent<Message>) => {
    if (data.kind === 'ask') return announce()
    if (data.secret === pageSecret.get()) return
    pageSecret.set(data.secret)
    onSecret()
  }
  if (pageSecret.get() === null) send({ kind: 'ask' })
  return { announce }
}

/** The code of `#login=CODE`, which is gone from the address and the history before anything else happens. */
export function takeLoginCode(): string | undefined {
  const code = /^#login=([\w-]+)$/.exec(location.hash)?.[1]
  if (location.hash.startsWith('#login')) history.replaceState(null, '', location.pathname)
  return code
}
