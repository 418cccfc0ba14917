import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KikiError } from '../../lib/errors.js'
import type { Processes } from '../../processes/processes.js'
import type { ToolContext } from '../tool.js'
import type { MediaAnswer, MediaRequest } from './media-worker.js'

/** What one decoder may use. */
export interface DecodeLimits {
  /** Milliseconds until it is ended. */
  ms: number
  /** MB of memory of its own, all kinds together; the system holds it to that, except on Windows. */
  memoryMb: number
}

const LIMITS: DecodeLimits = { ms: 30_000, memoryMb: 2048 }
/** MB of JavaScript's objects, a part of that. */
const HEAP_MB = 1024
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

type WithoutFile<T> = T extends unknown ? Omit<T, 'file'> : never
type Decoded = { head: Exclude<MediaAnswer, { kind: 'refused' }>; body: Buffer }

/**
 * Decodes bytes in a child process, from a private copy (src/tools/media/media-worker.ts).
 * @param name of the file, for messages.
 * @throws KikiError `too_large`, also where the decoder died of it, `invalid_arguments` where the file is broken, encrypted
 * or has no such page, `timeout`, `cancelled`.
 */
export async function decode(
  context: ToolContext,
  name: string,
  bytes: Buffer,
  request: WithoutFile<MediaRequest>,
  limits: DecodeLimits = LIMITS,
): Promise<Decoded> {
  mkdirSync(context.scratch, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(join(context.scratch, 'media-'))
  const late = AbortSignal.timeout(limits.ms)
  try {
    const file = join(folder, 'file')
    writeFileSync(file, bytes, { mode: 0o600, flag: 'wx' })
    const signal = AbortSignal.any([context.signal, late])
    const argv = workerArgv({ ...request, file } as MediaRequest, limits)
    return read(name, await runWorker(context.processes, argv, { name, signal }))
  } catch (error) {
    if (late.aborted && !context.signal.aborted) {
      throw new KikiError('timeout', `${name} took longer than ${limits.ms / 1000} s to decode; that was ended.`, {
        hint: 'Ask for fewer pages, or use a command to make it smaller.',
      })
    }
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runWorker(
  processes: Processes,
  argv: readonly [string, ...string[]],
  { name, signal }: { name: string; signal: AbortSignal },
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const result = await processes.run({
    argv,
    cwd: '/',
    signal,
    onStdout(chunk) {
      size += chunk.length
      chunks.push(chunk)
      return size <= MAX_ANSWER_BYTES
    },
  })
  if (result.exitCode === 0 && !result.stopped) return Buffer.concat(chunks)
  throw new KikiError('too_large', `${name} cannot be shown: its decoder ended without an answer.`, {
    hint: 'It most likely needs more memory than a decoder may have. Make it smaller with a command, or ask for fewer pages.',
    data: { exit_code: result.exitCode, signal: result.signal, stderr: result.stderr.slice(-500) },
  })
}

/** Most memory of a decoder is none of JavaScript's, so that the system has to limit it. */
function workerArgv(request: MediaRequest, { memoryMb }: DecodeLimits): [string, ...string[]] {
  const node: [string, ...string[]] = [
    process.execPath,
    `--max-old-space-size=${Math.min(HEAP_MB, memoryMb)}`,
    workerFile(),
    JSON.stringify(request),
  ]
  if (process.platform === 'win32') return node
  return ['/bin/sh', '-c', 'ulimit -c 0 && ulimit -d "$0" && exec "$@"', String(memoryMb * 1024), ...node]
}

function read(name: string, out: Buffer): Decoded {
  const line = out.indexOf(0x0a)
  const head = JSON.parse(out.toString('utf8', 0, line)) as MediaAnswer
  if (head.kind !== 'refused') return { head, body: out.subarray(line + 1) }
  const code = head.code === 'too_large' ? 'too_large' : 'invalid_arguments'
  throw new KikiError(code, `${name} cannot be shown: ${head.message}`, {
    hint: HINTS[head.code] ?? 'Look at it with a command.',
    data: { reason: head.code },
  })
}

const HINTS: Record<string, string> = {
  encrypted: 'The user can save a copy without a password.',
  no_page: 'Ask for pages that it has.',
  too_large: 'Make it smaller with a command first.',
}

/** The compiled program; from TypeScript sources, the one that the last build made. */
function workerFile(): string {
  const beside = fileURLToPath(new URL('./media-worker.js', import.meta.url))
  return existsSync(beside)
    ? beside
    : fileURLToPath(new URL('../../../dist/tools/media/media-worker.js', import.meta.url))
}
