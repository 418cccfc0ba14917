import { Fragment } from 'react'

/** A sentence of the host: what stands between backticks there is a command or a name, and is shown as one. */
export function Words({ text }: { text: string }) {
  return text
    .split(/`([^`]+)`/)
    .map((part, at) => (at % 2 === 1 ? <code key={`${at}`}>{part}</code> : <Fragment key={`${at}`}>{part}</Fragment>))
}
