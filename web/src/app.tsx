import { useSyncExternalStore } from 'react'
import type { Host } from './host.js'
import { HomePage } from './pages/home.js'
import { StartPage } from './pages/start.js'
import { Away } from './parts/away.js'
import { SignedOut } from './parts/signed-out.js'

/** In the order of the navigation. The fragment is the route, so a reload never asks the host for another file. */
const PAGES = [
  { hash: '#/', label: 'Home', Page: HomePage },
  { hash: '#/start', label: 'First steps', Page: StartPage },
] as const

function onHashChange(onChange: () => void): () => void {
  window.addEventListener('hashchange', onChange)
  return () => window.removeEventListener('hashchange', onChange)
}

export function App({ host }: { host: Host }) {
  const state = useSyncExternalStore(host.subscribe, host.state)
  const hash = useSyncExternalStore(onHashChange, () => location.hash)
  const { Page, hash: current } = PAGES.find((page) => page.hash === hash) ?? PAGES[0]
  return (
    <>
      <button type="button" className="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <header className="top">
        <a className="brand" href="#/">
          <img src="/icon.svg" alt="" width="28" height="28" /> Kiki
        </a>
        <nav aria-label="Pages">
          {PAGES.map((page) => (
            <a key={page.hash} href={page.hash} aria-current={page.hash === current ? 'page' : undefined}>
              {page.label}
            </a>
          ))}
        </nav>
      </header>
      <main id="main" tabIndex={-1}>
        {state.kind === 'signed_out' && <SignedOut why={state.why} />}
        {state.kind === 'away' && <Away />}
        {/* Hidden, not gone: what was being typed is still there after the next sign-in (WB-11). */}
        {(state.kind !== 'signed_out' || state.kept) && (
          <div className="page" hidden={state.kind === 'signed_out'}>
            <Page state={state.kind === 'signed_out' ? { kind: 'asking' } : state} />
          </div>
        )}
      </main>
      <footer className="bottom">
        <p>This page talks to your own machine only.</p>
        {state.kind === 'here' && (
          <p className="actions">
            <button type="button" className="quiet" onClick={() => void host.signOut(false)}>
              Sign out
            </button>
            <button type="button" className="quiet" onClick={() => void host.signOut(true)}>
              Sign out everywhere
            </button>
          </p>
        )}
      </footer>
    </>
  )
}
