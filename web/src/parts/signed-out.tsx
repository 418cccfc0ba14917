import { Command } from './command.js'

export function SignedOut({ why }: { why?: string | undefined }) {
  return (
    <section className="card narrow" aria-labelledby="signed-out">
      <h1 id="signed-out">You are signed out</h1>
      {why !== undefined && (
        <p className="notice" role="alert">
          {why}
        </p>
      )}
      <p>Only the owner of this machine may see its settings. To show that it is you, run this in a terminal here:</p>
      <Command text="kiki open" label="the command that signs you in" />
      <p className="muted">
        It opens this page signed in. The link works once, within two minutes. Other tabs like this one go on by
        themselves.
      </p>
    </section>
  )
}
