import { Argument, type Command } from 'commander'
import { KikiError } from '../lib/errors.js'
import { CONNECT_CLIENTS, clientConfig, connect } from './connect.js'
import { type CommandContext, homeOf, nextCommand, ownerOf, withExample } from './context.js'
import { resultOf } from './owner-client.js'

interface ConnectFlags {
  client?: string
  session?: string
}

/** `kiki connect` (CL-13): prints what a client needs to start the bridge; writes nothing. */
export function connectCommand(program: Command, { output }: CommandContext): void {
  const command = program.command('connect').description("print a client's exact configuration for Kiki")
  command
    .addArgument(new Argument('<name>', 'the client').choices(CONNECT_CLIENTS))
    // Not commander's required option: that would be asked for before an unknown name is said.
    .option('--client <id>', 'the connection that it uses: client_… (required)')
    .option('--session <ref>', 'the session that it starts in: ext_…')
    .action(async (client: string, flags: ConnectFlags, self: Command) => {
      const connection = flags.client
      if (connection === undefined) {
        return self.error("error: required option '--client <id>' not specified", {
          code: 'commander.missingMandatoryOptionValue',
        })
      }
      const options = { client, connection, session: flags.session, home: homeOf(self).dir }
      const config = clientConfig(options)
      for (const warning of await problemsNow(self, connection, flags.session)) await output.note(warning)
      await output.result(config, () => connect(options).trimEnd())
    })
  withExample(command, 'kiki connect claude-code --client client_01 --session ext_01')
}

/**
 * Whether a bridge with this configuration would be let in, as far as a running host can tell.
 * @returns what does not work now but can later.
 * @throws KikiError for what never will.
 */
async function problemsNow(self: Command, connection: string, session: string | undefined): Promise<string[]> {
  try {
    const warnings = await checkConnection(self, connection)
    if (session !== undefined) await checkSession(self, connection, session)
    return warnings
  } catch (error) {
    if (!(error instanceof KikiError) || error.code !== 'upstream_unavailable') throw error
    const what = session === undefined ? 'this connection exists' : 'this connection and session exist'
    return [`No host runs, so it could not be checked that ${what}. Start it with \`${nextCommand(self, 'start')}\`.`]
  }
}

async function checkConnection(self: Command, id: string): Promise<string[]> {
  const { kind, status, expires_at } = await resultOf(ownerOf(self).api.connections[':id'].$get({ param: { id } }))
  const another = { hint: `Make one with \`${nextCommand(self, 'connections add --name NAME')}\`.` }
  if (status === 'revoked') throw new KikiError('connection_revoked', `Connection ${id} is revoked.`, another)
  if (kind !== 'local') {
    const message = `Connection ${id} is of kind ${kind}; the bridge needs a local one.`
    throw new KikiError('permission_denied', message, another)
  }
  const renew = nextCommand(self, `connections set ${id} --expires WHEN`)
  const expired = expires_at !== null && Date.parse(expires_at) <= Date.now()
  return [
    ...(expired ? [`Connection ${id} has expired; renew it with \`${renew}\`.`] : []),
    ...(status === 'paused'
      ? [`Connection ${id} is paused; let it work with \`${nextCommand(self, `connections resume ${id}`)}\`.`]
      : []),
  ]
}

async function checkSession(self: Command, connection: string, ref: string): Promise<void> {
  const session = await resultOf(ownerOf(self).api.sessions[':ref'].$get({ param: { ref } }))
  if (session.connection !== connection) {
    throw new KikiError('session_unavailable', `Session ${ref} belongs to ${session.connection}, not ${connection}.`, {
      hint: `See \`${nextCommand(self, `sessions list --connection ${connection} --status open`)}\`.`,
    })
  }
  if (session.status === 'open') return
  throw new KikiError('session_closed', `Session ${ref} is closed.`, {
    hint: `Make another with \`${nextCommand(self, `sessions create --connection ${connection} --workspace DIR`)}\`.`,
  })
}
