import { execFile } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createMarks } from './members.js'

/** What each command takes: a mark, and named pipes in the door's folder, made ahead, because only another program can make them. */
export interface Pipes {
  /** Never the same again. */
  mark(): number | undefined
  /** Never the same again. */
  take(): Promise<string>
}

/** Made at a time. */
const BATCH = 16
const LEAST = 4

/** @param address of the door, once it is known. */
export function createPipes(address: () => string): Pipes {
  const ready: string[] = []
  let making: Promise<void> | undefined
  let batches = 0

  function make(): Promise<void> {
    making ??= makeBatch().finally(() => {
      making = undefined
    })
    return making
  }

  async function makeBatch(): Promise<void> {
    batches += 1
    const folder = join(dirname(address()), `pipes-${process.pid}-${batches}`)
    mkdirSync(folder, { mode: 0o700 })
    const names = Array.from({ length: BATCH }, (_, index) => join(folder, String(index)))
    await new Promise<void>((resolve, reject) => {
      execFile('mkfifo', ['-m', '600', ...names], (error) => (error === null ? resolve() : reject(error)))
    })
    ready.push(...names)
  }

  return {
    mark: createMarks(),
    async take() {
      while (ready.length === 0) await make()
      const pipe = ready.shift() as string
      // The next ones are made while this command runs; where that fails, whoever needs one is told.
      if (ready.length < LEAST) make().catch(() => undefined)
      return pipe
    },
  }
}
