import { join, resolve } from 'node:path'
import { configSchema } from '../../src/config/schema.js'
import type { Clock } from '../../src/lib/clock.js'
import { silentLog } from '../../src/lib/log.js'
import { createBackground } from '../../src/processes/background.js'
import { createChildRecords } from '../../src/processes/child-records.js'
import { createOutputs, type Outputs } from '../../src/processes/output/outputs.js'
import { type ChildProcesses, launcherCommand } from '../../src/processes/processes.js'
import { createSandboxNetwork } from '../../src/sandbox/network.js'
import { createSandboxes } from '../../src/sandbox/sandboxes.js'
import type { Store } from '../../src/store/store.js'
import { createShell, type Shell } from '../../src/tools/shell/shell.js'

export interface TestShellOptions {
  dir: string
  store: Store
  clock: Clock
  processes: ChildProcesses
  outputs?: Outputs
  launcher?: string
}

/** The shell as the host puts it together; commands are confined only where a compiled launcher is given. */
export function createTestShell({ dir, store, clock, processes, launcher = '', ...given }: TestShellOptions) {
  const outputs = given.outputs ?? testOutputs(dir)
  const config = () => configSchema.parse({})
  const children = createChildRecords({ store, clock })
  const background = createBackground({ store, outputs, clock, log: silentLog })
  const sandboxes = createSandboxes({
    ...{
      network: createSandboxNetwork(silentLog),
      processes,
      children,
      config,
      dir: join(dir, 'run'),
      log: silentLog,
      env: {},
      platform: process.platform,
    },
    launcher: launcherCommand(launcher),
    programFolder: resolve(import.meta.dirname, '../..'),
  })
  const hostEnvironment = { PATH: process.env.PATH }
  const shell: Shell = createShell({ processes, sandboxes, children, outputs, background, config, hostEnvironment })
  return { shell, sandboxes, outputs, background, children }
}

export function testOutputs(dir: string): Outputs {
  const limits = () => ({ operation: 1_000_000, total: 10_000_000 })
  return createOutputs({ dir: join(dir, 'output'), limits, log: silentLog })
}
