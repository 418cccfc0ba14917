import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { createScreen, type Screen } from './screen.js'

const PTY = fileURLToPath(new URL('../fixtures/pseudo-terminal.py', import.meta.url))

/** Whether pseudo-terminals can be had: Python's standard library makes them. */
export const HAS_PTY = process.platform !== 'win32' && spawnSync('python3', ['-c', 'import pty']).status === 0

export interface Terminal {
  /** What the program made of its window. */
  screen: Screen
  pid: number
  type(keys: string): void
  resize(columns: number, rows: number): void
  /** Resolves with the text on the screen once it fits; fails with what was there when the program ended before. */
  until(fits: RegExp | ((text: string) => boolean)): Promise<string>
  /** The exit code. */
  ended: Promise<number | null>
  close(): Promise<void>
}

export interface TerminalOptions {
  columns?: number
  rows?: number
  env?: Record<string, string>
}

/** A real program in a real pseudo-terminal. */
export async function openTerminal(
  argv: readonly string[],
  { columns = 120, rows = 40, env = {} }: TerminalOptions = {},
): Promise<Terminal> {
  const { CI: _ci, FORCE_COLOR: _force, NO_COLOR: _no, KIKI_HOME: _home, ...rest } = process.env
  const child = spawn('python3', [PTY, String(columns), String(rows), ...argv], {
    env: { ...rest, TERM: 'xterm-256color', ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const screen = createScreen()
  let wake: (() => void)[] = []
  let over = false
  const changed = () => {
    const woken = wake
    wake = []
    for (const done of woken) done()
  }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    screen.write(text)
    changed()
  })
  const ended = once(child, 'close').then(([code]) => {
    over = true
    changed()
    return code as number | null
  })
  const [pid] = (await once(child.stderr.setEncoding('utf8'), 'data')) as [string]
  const say = (value: object) => void child.stdin.write(`${JSON.stringify(value)}\n`)
  return {
    screen,
    pid: Number(pid),
    type: (keys) => say({ keys }),
    resize: (columns, rows) => say({ size: [columns, rows] }),
    async until(fits) {
      const fit = (text: string) => (typeof fits === 'function' ? fits(text) : fits.test(text))
      // Never a frame that is only half there (2026: "synchronized output").
      const seen = () => !screen.modes.has(2026) && fit(screen.text())
      while (!seen()) {
        if (over)
          throw new Error(`the program ended; on the screen was:\n${screen.text()}\nand before:\n${screen.raw()}`)
        await new Promise<void>((resolve) => wake.push(resolve))
      }
      return screen.text()
    },
    ended,
    async close() {
      child.stdin.end()
      await ended
    },
  }
}
