import pino from 'pino'
import { KikiError, messageOf } from './errors.js'
import { isObject } from './json.js'
import { type LogFile, openLogFile } from './log-file.js'

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug'

/** The part of pino that the rest of Kiki uses. */
export interface Log {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
  debug(fields: object, message: string): void
}

/** Names of fields whose values never reach a log, in any writing and at any depth (GU-60). */
const SECRET_FIELD =
  /token|secret|pass(word|phrase|wd)|authorization|cookie|credential|api[_-]?key|private[_-]?key|^code$/i
const REDACTED = '[redacted]'
/** Deeper parts of a field are left out: a log is no place for them. */
const MAX_DEPTH = 6

/**
 * JSON lines (PK-07) to a file of mode 0600, exchanged for a new one every 10 MiB (see `log-file.ts`); `stderr` prints them
 * there instead. A disk that is full later costs lines, never the host: that is said once on stderr.
 * @throws KikiError `conflict` where the file cannot be opened.
 */
export function createLog(target: { file: string } | 'stderr', level: LogLevel): Log & { close(): Promise<void> } {
  const file = target === 'stderr' ? undefined : open(target.file)
  const logger = pino(
    { level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
    file ?? pino.destination({ fd: 2, sync: true }),
  )
  let closed = false
  const at = (name: 'error' | 'warn' | 'info' | 'debug') => (fields: object, message: string) => {
    // Whoever is still at work while the host closes must not fail by saying so.
    if (!closed && logger.isLevelEnabled(name)) logger[name](redacted(fields), message)
  }
  return {
    error: at('error'),
    warn: at('warn'),
    info: at('info'),
    debug: at('debug'),
    async close() {
      closed = true
      await file?.close()
    },
  }
}

export const silentLog: Log = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} }

function open(file: string): LogFile {
  const onError = once((error) => process.stderr.write(`Kiki's log cannot be written: ${messageOf(error)}\n`))
  try {
    return openLogFile(file, { onError })
  } catch (error) {
    throw new KikiError('conflict', `The log ${file} cannot be opened: ${messageOf(error)}.`, {
      hint: 'Move what stands there out of the way, and see that the folder can be written.',
      cause: error,
    })
  }
}

function redacted(fields: object): object {
  return redact(fields, 0) as object
}

function redact(value: unknown, depth: number): unknown {
  if (value instanceof Error) return value.stack ?? value.message
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '[deeper]'
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      SECRET_FIELD.test(name) && inner !== undefined ? REDACTED : redact(inner, depth + 1),
    ]),
  )
}

function once(tell: (error: unknown) => void): (error: unknown) => void {
  let told = false
  return (error) => {
    if (!told) tell(error)
    told = true
  }
}
