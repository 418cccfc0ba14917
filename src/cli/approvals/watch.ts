import type { Command } from 'commander'
import { type Environment, environment } from '../../config/environment.js'
import { type CommandContext, ownerOf, withExample } from '../context.js'
import { watchLineByLine } from './line-by-line.js'

interface WatchFlags {
  lines?: boolean
}

/**
 * `kiki approvals watch` (CL-09): takes questions while it runs. Full screen in a terminal; else line by line, with `--json` as
 * JSON Lines: one value for each thing that happens.
 */
export function watchCommand(approvals: Command, { output }: CommandContext): void {
  const watch = approvals
    .command('watch')
    .description('take questions while it runs: full screen in a terminal, else line by line')
  watch.option('--lines', 'line by line in a terminal too; answers are read from standard input')
  watch.action(async ({ lines }: WatchFlags, command: Command) => {
    const client = ownerOf(command)
    const { stdin: input, stdout } = process
    const json = command.optsWithGlobals<{ json?: boolean }>().json === true
    const { stop, forget } = stopOnSignal()
    try {
      if (!lines && !json && canDraw(input.isTTY && stdout.isTTY, environment())) {
        // Loaded only here: no other command needs what draws the screen.
        const { watchFullScreen } = await import('./full-screen.js')
        const colors = (environment().NO_COLOR ?? '') === ''
        await watchFullScreen({ client, input, output: stdout, colors, stop })
      } else {
        const bell = () => void (stdout.isTTY && stdout.write('\u0007'))
        await watchLineByLine({ client, input, output, bell, stop })
      }
    } finally {
      forget()
    }
  })
  withExample(watch, 'kiki approvals watch', 'kiki approvals watch --json')
}

function canDraw(isTerminal: boolean, { TERM }: Environment): boolean {
  return isTerminal && TERM !== 'dumb' && TERM !== undefined
}

/** Signals end the watch as `q` does, so that the terminal is given back. */
function stopOnSignal(): { stop: AbortController; forget: () => void } {
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  const stop = new AbortController()
  const hear = () => stop.abort()
  for (const signal of signals) process.on(signal, hear)
  return {
    stop,
    forget: () => {
      for (const signal of signals) process.off(signal, hear)
    },
  }
}
