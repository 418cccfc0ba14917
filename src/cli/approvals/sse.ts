/** One server-sent event: its name and its data (HTML, "server-sent events"). */
export interface SentEvent {
  event: string
  data: string
}

/** The events of a stream until it ends. Only what the host sends is read: `event` and `data` fields, lines that end with LF. */
export async function* sentEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<SentEvent> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of body) {
    const blocks = (rest + decoder.decode(chunk, { stream: true })).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) yield eventOf(block)
  }
}

function eventOf(block: string): SentEvent {
  const fields = block.split('\n').map((line) => /^(\w+): ?(.*)$/.exec(line))
  const values = (name: string) => fields.flatMap((field) => (field?.[1] === name ? [field[2] ?? ''] : []))
  return { event: values('event').join(''), data: values('data').join('\n') }
}
