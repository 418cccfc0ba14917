import { Command } from './command.js'
import { Words } from './words.js'

export function SignedOut({ why }: { why?: string | undefined }) {
  return (
    <section className="card narrow" aria-labelledby="signed-out">
      <h1 id="signed-out">You are signed out</h1>
      {why !== undefined && (
        <p className="notice" role="alert">
          <Words text={why} />
        </p>
      )}
      <p>To sign in, run this in a terminal on this machine:</p>
      <Command text="kiki open" label="the command that signs you in" />
      <p className="muted">It opens this page signed in. Other tabs like this one go on by themselves.</p>
    </section>
  )
}
