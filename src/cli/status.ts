import type { Command } from 'commander'
import { KikiError } from '../lib/errors.js'
import { type CommandContext, homeOf, nextCommand, ownerOf, withExample } from './context.js'
import { facts } from './output.js'
import { resultOf } from './owner-client.js'

/** `kiki status` (CL-02): what the host does now; that none runs is an answer too, not a failure. */
export function statusCommand(program: Command, { output }: CommandContext): void {
  const status = program
    .command('status')
    .description('what the host does now; that none runs is an answer too: running: false, exit code 0')
  status.action(async (_: unknown, command: Command) => {
    const { dir } = homeOf(command)
    const now = await hostStatus(command)
    await output.result(now ?? { running: false, home: dir }, () => {
      if (now) return facts(statusWords(now), output.columns)
      return `No host runs for ${dir}. Start it with \`${nextCommand(command, 'start')}\`.`
    })
  })
  withExample(status, 'kiki status', 'kiki status --json')
}

type Status = NonNullable<Awaited<ReturnType<typeof hostStatus>>>

/** What means something to its owner now; `--json` has every field of CL-02. */
function statusWords(now: Status): Record<string, string | number> {
  const { running, waiting_approval: waiting } = now.operations
  return {
    Host: `runs (pid ${now.pid}, version ${now.version})`,
    Home: now.home,
    Since: new Date(Date.now() - now.uptime_s * 1000).toISOString().replace(/\.\d+Z$/, 'Z'),
    'Settings page': now.owner_url,
    Clients: now.external.clients_allowed ? 'may use Kiki' : 'turned off by experimental.external_clients',
    'From outside': now.external.enabled
      ? 'clients on other machines can reach Kiki'
      : 'nothing beyond this machine can reach Kiki',
    Connections: now.connections,
    'Open sessions': now.sessions,
    'Calls running': running,
    ...(waiting > 0 && { 'Calls waiting for you': waiting }),
  }
}

/** The status of the running host, or undefined where none answers. */
export async function hostStatus(command: Command) {
  try {
    return await resultOf(ownerOf(command).api.status.$get())
  } catch (error) {
    if (error instanceof KikiError && error.code === 'upstream_unavailable') return undefined
    throw error
  }
}
