import { isObject } from '../lib/json.js'

const SECRET_NAME = /pass(word|phrase|wd)?$|secret|token$|api[_-]?key|authorization|credential|private[_-]?key|cookie/i
const REDACTED = '[redacted]'

/** Arguments as the owner's lists show them: values whose name says that they are secret are left out (OP-17). */
export function redact(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(redact)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET_NAME.test(name) && typeof inner === 'string' ? REDACTED : redact(inner),
    ]),
  )
}
