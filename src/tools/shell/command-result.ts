import type { KeptBytes } from '../../lib/content.js'
import { KikiError } from '../../lib/errors.js'
import type { Ended } from '../../processes/command.js'
import type { SavedOutput } from '../../processes/output/saved.js'
import type { KeptOutput } from '../../processes/output/writer.js'
import type { ToolResult } from '../tool.js'

/** How a command in the foreground ended. */
export interface CommandEnd {
  ended: Ended | KikiError
  kept: KeptOutput
  timedOut: boolean
  cancelled: boolean
  unconfined: boolean
  /** A sandbox was asked for. */
  wanted: boolean
  /** What it made and must not have. */
  planted: string[]
  timeoutMs: number
  ms: number
}

/** What a command is answered with: what it wrote, then how it ended (SH-01). */
export function resultOf(end: CommandEnd): ToolResult {
  const { ended, kept, timedOut, unconfined, planted, ms } = end
  const exit = ended instanceof KikiError ? undefined : ended
  const facts = {
    exit_code: exit?.exitCode ?? null,
    signal: exit?.signal ?? null,
    duration_ms: ms,
    timed_out: timedOut,
    output_bytes: kept.bytes,
    truncated: 'saved' in kept && kept.saved.dropped > 0,
    ...(unconfined ? { unconfined } : {}),
    ...(exit === undefined || exit.left.length === 0 ? {} : { ended_processes: exit.left }),
    ...(planted.length === 0 ? {} : { removed: planted }),
  }
  const failure = failureOfEnd(end)
  const shown =
    'saved' in kept ? { type: 'long_text' as const, length: kept.saved.chars, read: kept.saved.text } : undefined
  const content: ToolResult['content'] =
    shown !== undefined ? [shown] : 'text' in kept && kept.text !== '' ? [{ type: 'text', text: kept.text }] : []
  const notes = notesOf(end, exit)
  const original = 'saved' in kept ? keptOutput(kept.saved) : undefined
  if (failure === undefined) notes.unshift(`Exit code 0 after ${seconds(ms)}${kept.bytes === 0 ? ', no output' : ''}.`)
  if (notes.length > 0) content.push({ type: 'text', text: notes.join('\n') })
  if (original === undefined) return { content, facts, ...(failure === undefined ? {} : { failure }) }
  content.splice(1, 0, original)
  return { content, facts: { ...facts, original_part: 1 }, ...(failure === undefined ? {} : { failure }) }
}

/** The bytes as they were written, control sequences and all (SH-05): paged as part 1. */
function keptOutput({ raw, bytes, dropped }: SavedOutput): KeptBytes {
  return { type: 'kept', mimeType: 'application/octet-stream', length: bytes - dropped, read: raw, output: true }
}

/** One that had to be ended with its sandbox has been ended all the same: why it was is what counts. */
function failureOfEnd(end: CommandEnd): KikiError | undefined {
  const { ended } = end
  if (!(ended instanceof KikiError)) return failureFor(end, ended)
  const seen = ended.code === 'cancelled' && (end.timedOut || end.cancelled)
  return seen ? failureFor(end, { exitCode: null, signal: null, left: [] }) : ended
}

function failureFor(
  { timedOut, cancelled, timeoutMs, ms }: CommandEnd,
  { exitCode, signal }: Ended,
): KikiError | undefined {
  if (cancelled) return new KikiError('cancelled', `It was ended after ${seconds(ms)}; nothing of it is left.`)
  if (timedOut) {
    return new KikiError('timeout', `It was ended after ${timeoutMs} ms (timeout_ms); nothing of it is left.`, {
      hint: 'Give it more time, or run it with background: true.',
    })
  }
  if (signal !== null) return new KikiError('command_failed', `It was ended by ${signal} after ${seconds(ms)}.`)
  return exitCode === 0 ? undefined : new KikiError('command_failed', `Exit code ${exitCode} after ${seconds(ms)}.`)
}

function notesOf({ planted, unconfined, wanted }: CommandEnd, exit: Ended | undefined): string[] {
  const left = exit?.left ?? []
  return [
    ...(left.length === 0
      ? []
      : [
          `Left when the shell ended, and ended: ${left.map(({ name, pid }) => `${name} (${pid})`).join(', ')}. Use background: true to keep processes.`,
        ]),
    ...planted.map((path) => `It made "${path}", from which git would take settings: that was removed.`),
    ...(unconfined && wanted ? ['No sandbox works here: it ran with the rights of the owner.'] : []),
  ]
}

function seconds(ms: number): string {
  return ms < 100 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`
}
