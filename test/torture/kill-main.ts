import { type KillFigures, killRun } from './kill-run.js'
import type { TortureOptions, TortureResult } from './main.js'

/** GU-06 at random instants: several homes side by side, each killed again and again under load. */
export async function main({ kills, worlds, minutes, seed, say }: TortureOptions): Promise<TortureResult> {
  const before = performance.now()
  let done = 0
  const onKill = () => {
    if (++done % 50 === 0) say(`${done} kills after ${Math.round((performance.now() - before) / 1000)} s`)
  }
  const runs = Array.from({ length: worlds }, (_, i) =>
    killRun({ kills: Math.ceil(kills / worlds), clients: 2, parallel: 6, seed: seed + i, minutes, onKill }),
  )
  const all = await Promise.all(runs)
  const sum = (name: Exclude<keyof KillFigures, 'faults'>) => all.reduce((total, run) => total + run[name], 0)
  return {
    figures: [
      ['kills (SIGKILL of the host) at random instants', sum('kills')],
      ['of them before the host was ready', sum('duringStart')],
      ['keyed calls, all answered in the end', sum('calls')],
      ['calls that a kill interrupted at least once', sum('interrupted')],
      ['completed, each with exactly one effect', sum('completed')],
      ['`outcome_unknown`, each with at most one effect', sum('unknown')],
      ['of them the effect had happened', sum('unknownWithEffect')],
      ['found `accepted` after a kill, each without an effect', sum('foundAccepted')],
      ['replayed at the end with the answer that was given', sum('replayed')],
      ['effects that happened twice, answers lost or changed, damaged databases', sum0(all)],
      ['seconds', Math.round((performance.now() - before) / 1000)],
    ],
    faults: all.flatMap((run) => run.faults),
  }
}

const sum0 = (all: KillFigures[]) => all.reduce((total, { faults }) => total + faults.length, 0)
