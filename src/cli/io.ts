import { createInterface } from 'node:readline/promises'
import type { Writable } from 'node:stream'

/** The streams of one run of the command line. */
export interface Io {
  /** Each resolves when the text has been handed to the system, so that leaving cannot cut it. */
  out(text: string): Promise<void>
  err(text: string): Promise<void>
  /** Columns of the terminal that `out` writes to, or undefined where it is none. */
  columns: number | undefined
  /** Asks a question in the terminal (on stderr); undefined where nobody can answer. */
  ask: ((question: string) => Promise<string>) | undefined
}

export function processIo(): Io {
  const { stdin, stdout, stderr } = process
  return {
    out: writer(stdout),
    err: writer(stderr),
    columns: stdout.isTTY ? stdout.columns : undefined,
    ask: stdin.isTTY && stderr.isTTY ? ask : undefined,
  }
}

async function ask(question: string): Promise<string> {
  const prompt = createInterface({ input: process.stdin, output: process.stderr })
  // Ctrl-D is no answer, and so no yes.
  const gone = new Promise<string>((resolve) => prompt.once('close', () => resolve('')))
  try {
    return await Promise.race([prompt.question(question), gone])
  } finally {
    prompt.close()
  }
}

/** Writes whole texts; a reader that has gone (`| head`) ends the output, not the command. */
function writer(stream: Writable): (text: string) => Promise<void> {
  let gone = false
  stream.on('error', () => {
    gone = true
  })
  return (text) =>
    new Promise((resolve, reject) => {
      if (gone) return resolve()
      stream.write(text, (error) => {
        if (!error || ('code' in error && error.code === 'EPIPE')) resolve()
        else reject(error)
      })
    })
}
