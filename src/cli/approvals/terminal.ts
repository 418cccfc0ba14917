import { writeSync } from 'node:fs'
import { emitKeypressEvents, type Interface } from 'node:readline'
import type { Key } from './press.js'
import { oneLine } from './question.js'

export interface Terminal {
  size(): { columns: number; rows: number }
  /** Shows a frame; only lines that changed are written. */
  paint(frame: string): void
  title(text: string): void
  bell(): void
  /** Gives the terminal back as it was; any further call does nothing. */
  close(): void
}

const ESC = '\u001b'
/** Own title, other screen without line wrapping and cursor, pasted text marked (xterm, "Control Sequences"). */
const ENTER = `${ESC}[22;0t${ESC}[?1049h${ESC}[?7l${ESC}[?25l${ESC}[?2004h${ESC}[2J`
/** Cleared first: after resizing, some terminals keep what was there. */
const LEAVE = `${ESC}[2J${ESC}[?2004l${ESC}[?25h${ESC}[?7h${ESC}[?1049l${ESC}[23;0t`
/** A frame is shown at once where the terminal knows how ("synchronized output"). */
const BEGIN = `${ESC}[?2026h`
const END = `${ESC}[?2026l`
/** Milliseconds after which an escape is the key and not the beginning of another one. */
const ESCAPE_MS = 50

export interface TerminalOptions {
  input: typeof process.stdin
  output: typeof process.stdout
  onKey: (key: Key) => void
  onResize: () => void
}

/** Takes the terminal over: its other screen, its keys, its title. */
export function openTerminal({ input, output, onKey, onResize }: TerminalOptions): Terminal {
  let painted: string[] = []
  let open = true
  const hear = (_: string | undefined, key: Key) => onKey(key)
  const resized = () => {
    painted = []
    output.write(`${ESC}[2J`)
    onResize()
  }
  // The last that runs in a process, however it ends: a terminal that is left behind in this state is of no use.
  const leave = () => {
    if (!open) return
    open = false
    writeSync(output.fd, LEAVE)
    input.setRawMode(false)
  }
  process.once('exit', leave)
  emitKeypressEvents(input, { escapeCodeTimeout: ESCAPE_MS } as unknown as Interface)
  input.setRawMode(true)
  input.on('keypress', hear)
  input.resume()
  output.on('resize', resized)
  output.write(ENTER)
  return {
    size: () => ({ columns: output.columns, rows: output.rows }),
    paint(frame) {
      if (!open) return
      const lines = frame.split('\n')
      const changed = lines.flatMap((line, index) =>
        line === painted[index] ? [] : [`${ESC}[${index + 1};1H${ESC}[2K${line}`],
      )
      const rest = lines.length < painted.length ? [`${ESC}[${lines.length + 1};1H${ESC}[0J`] : []
      painted = lines
      if (changed.length + rest.length > 0) output.write(BEGIN + [...changed, ...rest].join('') + END)
    },
    title(text) {
      if (open) output.write(`${ESC}]2;${oneLine(text)}\u0007`)
    },
    bell() {
      if (open) output.write('\u0007')
    },
    close() {
      input.off('keypress', hear)
      input.pause()
      output.off('resize', resized)
      process.off('exit', leave)
      leave()
    },
  }
}
