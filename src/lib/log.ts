import { openSync } from 'node:fs'
import pino from 'pino'

export type LogLevel = 'silent' | 'error' | 'warn' | 'info' | 'debug'

/** The part of pino that the rest of Kiki uses. */
export interface Log {
  error(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
  debug(fields: object, message: string): void
}

/** Field names whose values never reach a log (GU-60). */
const SECRET_FIELDS = ['token', 'secret', 'password', 'authorization', 'cookie', 'credential', 'code']

/** JSON lines to a file (made with mode 0600); `stderr` prints them there instead. */
export function createLog(target: { file: string } | 'stderr', level: LogLevel): Log & { flush(): void } {
  const destination =
    target === 'stderr'
      ? pino.destination({ fd: 2, sync: true })
      : // Opened here: what pino opens by itself is not ready yet when a start fails at once, and flushing it would throw.
        pino.destination({ fd: openSync(target.file, 'a', 0o600), sync: false })
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: { paths: SECRET_FIELDS.flatMap((f) => [f, `*.${f}`]), censor: '[redacted]' },
    },
    destination,
  )
  return Object.assign(
    {
      error: (fields: object, message: string) => logger.error(fields, message),
      warn: (fields: object, message: string) => logger.warn(fields, message),
      info: (fields: object, message: string) => logger.info(fields, message),
      debug: (fields: object, message: string) => logger.debug(fields, message),
    },
    { flush: () => destination.flushSync() },
  )
}

export const silentLog: Log = { error: () => {}, warn: () => {}, info: () => {}, debug: () => {} }
