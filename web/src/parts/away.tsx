import { Command } from './command.js'

export function Away() {
  return (
    <section className="notice" aria-labelledby="away">
      <h2 id="away">Kiki does not answer</h2>
      <p>It was stopped or is starting again. This page keeps trying and goes on by itself. To start it, run:</p>
      <Command text="kiki start --background" label="the command that starts the host" />
    </section>
  )
}
