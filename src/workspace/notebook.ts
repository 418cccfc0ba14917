import { z } from 'zod'

/** The largest notebook that is read as one, in bytes: it is parsed as a whole. */
export const MAX_NOTEBOOK_BYTES = 16 * 1024 * 1024

/** Text in a notebook is a string, or its lines one by one. */
const text = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => (typeof value === 'string' ? value : value.join('')))

const output = z.looseObject({
  output_type: z.string(),
  name: z.string().optional(),
  text: text.optional(),
  data: z.record(z.string(), z.unknown()).optional(),
  ename: z.string().optional(),
  evalue: z.string().optional(),
  traceback: z.array(z.string()).optional(),
})

const cell = z.looseObject({
  cell_type: z.string(),
  source: text,
  execution_count: z.number().nullable().optional(),
  outputs: z.array(output).optional(),
  attachments: z.record(z.string(), z.unknown()).optional(),
})

const notebook = z.looseObject({
  nbformat: z.number(),
  cells: z.array(cell),
  metadata: z
    .looseObject({
      language_info: z.looseObject({ name: z.string().optional() }).optional(),
      kernelspec: z.looseObject({ language: z.string().optional(), name: z.string().optional() }).optional(),
    })
    .optional(),
})

type Notebook = z.output<typeof notebook>
type Cell = Notebook['cells'][number]
type Output = z.output<typeof output>

/**
 * A Jupyter notebook (nbformat 4) as lines: each cell with kind, number and source, then its outputs as text; images and other
 * media are named only (FI-05).
 * @returns why it cannot be shown so, where the JSON is broken or is no such notebook.
 */
export function notebookLines(content: string): { lines: string[]; cells: number } | { problem: string } {
  const parsed = parseJson(content)
  if ('problem' in parsed) return parsed
  const checked = notebook.safeParse(parsed.value)
  if (!checked.success) {
    const where = checked.error.issues[0]?.path.join('.')
    return { problem: `it is no notebook of format 4${where === undefined || where === '' ? '' : ` (see "${where}")`}` }
  }
  const { cells, metadata } = checked.data
  const language = metadata?.language_info?.name ?? metadata?.kernelspec?.language ?? metadata?.kernelspec?.name
  const lines = cells.flatMap((one, index) => [...(index === 0 ? [] : ['']), ...cellLines(one, index + 1, language)])
  return { lines, cells: cells.length }
}

function parseJson(content: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(content) }
  } catch (error) {
    if (error instanceof SyntaxError) return { problem: `its JSON is broken (${error.message})` }
    throw error
  }
}

function cellLines(
  { cell_type: kind, source, execution_count: count, outputs, attachments }: Cell,
  number: number,
  language: string | undefined,
) {
  const what = kind === 'code' && language !== undefined ? `code, ${language}` : kind
  const run = kind === 'code' && typeof count === 'number' ? `, run as [${count}]` : ''
  return [
    `[cell ${number}: ${what}${run}]`,
    ...linesOf(source),
    ...Object.keys(attachments ?? {}).map((name) => `[attachment of cell ${number}: ${name}, not shown]`),
    ...(outputs ?? []).flatMap((one) => outputLines(one, number)),
  ]
}

function outputLines(one: Output, number: number): string[] {
  const head = (what: string) => `[output of cell ${number}: ${what}]`
  if (one.output_type === 'stream') return [head(one.name ?? 'stream'), ...linesOf(one.text ?? '')]
  if (one.output_type === 'error') {
    const trace = (one.traceback ?? []).flatMap((part) => linesOf(withoutColours(part)))
    return [head(`error ${one.ename ?? ''}: ${withoutColours(one.evalue ?? '')}`), ...trace]
  }
  const data = Object.entries(one.data ?? {})
  const plain = text.safeParse(one.data?.['text/plain'])
  const others = data.filter(([type]) => type !== 'text/plain' || !plain.success)
  return [
    ...(plain.success ? [head('text/plain'), ...linesOf(withoutColours(plain.data))] : []),
    ...others.map(([type, value]) => head(`${type}, ${sizeOf(type, value)}, not shown`)),
  ]
}

/** Media stand in base64, the rest as text or JSON. */
function sizeOf(type: string, value: unknown): string {
  const raw = text.safeParse(value)
  if (!raw.success) return `${JSON.stringify(value)?.length ?? 0} characters`
  const coded = /^(image|audio|video)\//.test(type) && type !== 'image/svg+xml'
  return coded ? `${Buffer.from(raw.data, 'base64').length} bytes` : `${raw.data.length} characters`
}

/** A last line end begins no line. */
function linesOf(value: string): string[] {
  if (value === '') return []
  return value.replace(/\r?\n$/, '').split(/\r?\n/)
}

/** Colours of a terminal (SGR), which tracebacks are full of. */
function withoutColours(value: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character is what colours begin with
  return value.replace(/\u001b\[[0-9;]*m/g, '')
}
