import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { KikiError } from '../../lib/errors.js'
import type { ToolContext } from '../tool.js'
import type { MediaAnswer, MediaRequest } from './media-worker.js'

/** Milliseconds that a decoder may take, its memory in MB, and the most that it may answer. */
const DECODE_MS = 30_000
const MEMORY_MB = 1024
const MAX_ANSWER_BYTES = 64 * 1024 * 1024

type WithoutFile<T> = T extends unknown ? Omit<T, 'file'> : never
type Decoded = { head: Exclude<MediaAnswer, { kind: 'refused' }>; body: Buffer }

/**
 * Decodes bytes in a child process, from a private copy (src/tools/media/media-worker.ts).
 * @param name of the file, for messages.
 * @throws KikiError `too_large`, `invalid_arguments` where the file is broken, encrypted or has no such page, `timeout`,
 * `cancelled`, `internal_error` where the decoder died.
 */
export async function decode(
  context: ToolContext,
  name: string,
  bytes: Buffer,
  request: WithoutFile<MediaRequest>,
): Promise<Decoded> {
  mkdirSync(context.scratch, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(join(context.scratch, 'media-'))
  const late = AbortSignal.timeout(DECODE_MS)
  try {
    const file = join(folder, 'file')
    writeFileSync(file, bytes, { mode: 0o600, flag: 'wx' })
    const out = await runWorker(context, { ...request, file } as MediaRequest, AbortSignal.any([context.signal, late]))
    return read(name, out)
  } catch (error) {
    if (late.aborted && !context.signal.aborted) {
      throw new KikiError('timeout', `${name} took longer than ${DECODE_MS / 1000} s to decode; that was ended.`, {
        hint: 'Ask for fewer pages, or use a command to make it smaller.',
      })
    }
    throw error
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

async function runWorker({ processes }: ToolContext, request: MediaRequest, signal: AbortSignal): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const result = await processes.run({
    argv: [process.execPath, `--max-old-space-size=${MEMORY_MB}`, workerFile(), JSON.stringify(request)],
    cwd: '/',
    signal,
    onStdout(chunk) {
      size += chunk.length
      chunks.push(chunk)
      return size <= MAX_ANSWER_BYTES
    },
  })
  if (result.exitCode === 0 && !result.stopped) return Buffer.concat(chunks)
  throw new KikiError('internal_error', 'The decoder of images and PDF files ended without an answer.', {
    hint: 'The file may be made to do that, or need more memory than it may have.',
    data: { exit_code: result.exitCode, signal: result.signal, stderr: result.stderr.slice(-500) },
  })
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
