import { FirstSteps } from '../parts/first-steps.js'

export function StartPage() {
  return (
    <section aria-labelledby="start">
      <h1 id="start">First steps</h1>
      <p className="lead">Three commands from nothing to a client that works on one folder, within limits you set.</p>
      <FirstSteps />
    </section>
  )
}
