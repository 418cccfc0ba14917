import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { silentLog } from '../../src/lib/log.js'
import { type ConfinedProcesses, openConfined } from '../../src/processes/confined.js'
import { launcherCommand } from '../../src/processes/processes.js'
import { buildLauncher } from './build-launcher.js'
import { expectGone, isGone, never } from './harness.js'

let dir: string
let launcher: ReturnType<typeof buildLauncher>
const PATH = process.env.PATH ?? ''

beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'kiki-confined-'))
  launcher = buildLauncher()
})
afterAll(() => {
  launcher.remove()
  rmSync(dir, { recursive: true, force: true })
})

/** As a client of containers: what it stands for lives on beside it, until it is ended by name. */
async function open(name: string, stop: readonly [string, ...string[]]) {
  const pidFile = join(dir, `${name}.pid`)
  const beside = `setsid sleep 900 >/dev/null 2>&1 & echo $! >${pidFile}; exec "$@"`
  const processes = await openConfined({
    ...{ dir: join(dir, 'run'), log: silentLog, env: { PATH } },
    start: ({ folder }) => ({
      argv: ['bash', '-c', beside, 'bash', ...launcherCommand(launcher.launcherPath)],
      ...{ env: { PATH }, address: join(folder, 's'), stop },
    }),
  })
  const command = await processes.command({
    argv: ['true'],
    cwd: dir,
    signal: never(),
    script: false,
    input: false,
    keep: false,
  })
  command.output.resume()
  await command.exited
  return { processes, left: () => Number(readFileSync(pidFile, 'utf8')) }
}

const ends: [string, (processes: ConfinedProcesses) => unknown][] = [
  ['killed', (processes) => processes.kill('its grant ended')],
  ['closed', (processes) => processes.close()],
]

it('SB-03 GU-30 what a sandbox leaves beside its launcher is ended before the sandbox counts as gone', async () => {
  for (const [name, end] of ends) {
    const { processes, left } = await open(name, ['bash', '-c', `kill -9 $(cat ${join(dir, name)}.pid)`])
    expect(isGone(left())).toBe(false)
    end(processes)
    await processes.lost
    await expectGone(left())
  }
})

it('SB-03 a sandbox whose rest cannot be ended counts as gone all the same', async () => {
  const { processes, left } = await open('missing', ['kiki-no-such-program'])
  processes.kill('its grant ended')
  await processes.lost
  process.kill(left(), 'SIGKILL')
  await expectGone(left())
})
