import { z } from 'zod'
import { endWords } from '../../processes/background.js'
import type { ProcessRow } from '../../store/processes.js'
import { defineTool, type ToolContext, type ToolResult, text } from '../tool.js'

const input = z.strictObject({
  process_id: z.string().optional().describe('Without it: lists the processes.'),
  cursor: z.int().default(0).describe('Where the last answer ended; -N for the last N bytes.'),
  wait_ms: z.int().min(0).max(45_000).default(0).describe('Wait so long for more.'),
})

type Input = z.infer<typeof input>

/** SH-03. */
export const processOutput = defineTool<Input>({
  name: 'ProcessOutput',
  title: 'Read a background process',
  description: 'Lists the background processes of this session, or reads what one has written, also after its end.',
  effect: 'read',
  family: 'shell',
  input,
  async run(context, { process_id, cursor, wait_ms }) {
    if (process_id === undefined) return listed(context)
    const { background } = context.shell
    const row = background.require(context.session.ref, process_id)
    const { signal, limits } = context
    const page = await background.read(row, { cursor, limit: limits.inlineText, waitMs: wait_ms, signal })
    const more = page.bytes - page.next
    const state = `${process_id} is ${stateOf(page.row)}.`
    const rest = more > 0 ? `${more} more bytes from cursor ${page.next}.` : `Cursor ${page.next}.`
    return text(`${page.text}${page.text === '' || page.text.endsWith('\n') ? '' : '\n'}[${state} ${rest}]`, {
      ...factsOf(page.row),
      ...{ text: page.text, cursor: page.next, bytes: page.bytes },
    })
  },
})

function listed({ shell, session }: ToolContext): ToolResult {
  const rows = shell.background.list(session.ref)
  const lines = rows.map(
    (row) => `${row.id}  ${stateOf(row)}  ${shell.background.bytes(row)} bytes  ${firstLine(row.command)}`,
  )
  return text(lines.length === 0 ? 'No background processes in this session.' : lines.join('\n'), {
    processes: rows.map((row) => ({ ...factsOf(row), command: row.command, bytes: shell.background.bytes(row) })),
  })
}

function stateOf(row: ProcessRow): string {
  return endWords(row)
}

function factsOf({ id, status, exit_code, signal, started_at, ended_at }: ProcessRow): Record<string, unknown> {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  return { process_id: id, status, exit_code, signal, started_at: time(started_at), ended_at: time(ended_at) }
}

function firstLine(command: string): string {
  const [line = ''] = command.split('\n')
  return line.length > 100 || line !== command ? `${line.slice(0, 100)} …` : line
}
