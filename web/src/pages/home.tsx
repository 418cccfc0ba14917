import type { HostStatus } from '../api.js'
import type { HostState } from '../host.js'
import { FirstSteps } from '../parts/first-steps.js'
import { agoWords, sinceWords } from '../parts/time.js'

export function HomePage({ state }: { state: Exclude<HostState, { kind: 'signed_out' }> }) {
  const status = state.kind === 'asking' ? undefined : state.status
  return (
    <>
      <section className="intro" aria-labelledby="what">
        <h1 id="what">Your machine, shared on your terms.</h1>
        <p className="lead">
          Kiki lets the AI clients that you choose work on this machine: read, search and edit files. You decide what
          each one may do, and can stop it at any time.
        </p>
      </section>
      <section className="card" aria-labelledby="status" aria-busy={status === undefined}>
        <HostLine state={state} />
        {status === undefined ? state.kind === 'asking' && <Skeleton /> : <Facts status={status} />}
      </section>
      {status !== undefined && (status.connections === 0 || status.sessions === 0) && (
        <section aria-labelledby="first">
          <h2 id="first">First steps</h2>
          <p className="muted">No client works here yet. Three commands change that.</p>
          <FirstSteps />
        </section>
      )}
    </>
  )
}

function HostLine({ state }: { state: HostState }) {
  const words = { asking: 'Asking the host…', here: 'The host is running', away: 'Last known' }
  return (
    <div className="host-line" role="status">
      <span className={`lamp ${state.kind}`} aria-hidden="true" />
      <h2 id="status">{state.kind === 'signed_out' ? '' : words[state.kind]}</h2>
      {state.kind === 'here' && (
        <p className="muted">
          since {sinceWords(state.status.uptime_s)} ({agoWords(state.status.uptime_s)}), version {state.status.version}
        </p>
      )}
    </div>
  )
}

function Facts({ status }: { status: HostStatus }) {
  return (
    <>
      <dl className="counts">
        <Count label="Connections" value={status.connections} />
        <Count label="Sessions" value={status.sessions} />
        <Count label="Running now" value={status.operations.running} />
      </dl>
      <dl className="facts">
        <Fact label="Home" value={status.home} code />
        <Fact label="Address" value={location.origin} code />
        <Fact label="Process" value={String(status.pid)} code />
      </dl>
      <p className="muted">
        Nothing beyond this machine can reach Kiki. Not in this version: approvals on this page, MCP servers behind
        Kiki, remote access.
      </p>
      <CommandRights status={status} />
    </>
  )
}

/** What commands can do, said plainly (SB-04). */
function CommandRights({ status }: { status: HostStatus }) {
  const { sandbox, unconfined_connections: open } = status
  if (open > 0) {
    return (
      <p className="warning" role="note">
        Commands of {open === 1 ? 'one connection' : `${open} connections`} run without a sandbox: they have your own
        rights on this machine.
      </p>
    )
  }
  if (sandbox !== 'none') return <p className="muted">Commands run in a sandbox ({sandbox}).</p>
  return <p className="muted">No sandbox works here, so commands that require one are refused. See kiki doctor.</p>
}

function Count({ label, value }: { label: string; value: number }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function Fact({ label, value, code = false }: { label: string; value: string; code?: boolean }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd>{code ? <code>{value}</code> : value}</dd>
    </div>
  )
}

function Skeleton() {
  return (
    <div className="skeleton" aria-hidden="true">
      <span />
      <span />
      <span />
      <span />
    </div>
  )
}
