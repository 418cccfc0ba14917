import { Argument, type Command } from 'commander'
import { CONNECT_CLIENTS, clientConfig, connect } from './connect.js'
import { type CommandContext, homeOf, withExample } from './context.js'

/** `kiki connect` (CL-13): prints what a client needs to start the bridge; writes nothing. */
export function connectCommand(program: Command, { output }: CommandContext): void {
  const command = program.command('connect').description("print a client's exact configuration for Kiki")
  command
    .addArgument(new Argument('<name>', 'the client').choices(CONNECT_CLIENTS))
    .requiredOption('--client <id>', 'the connection that it uses: client_…')
    .option('--session <ref>', 'the session that it starts in: ext_…')
    .action(async (client: string, flags: { client: string; session?: string }, self: Command) => {
      const options = { client, connection: flags.client, session: flags.session, home: homeOf(self).dir }
      await output.result(clientConfig(options), () => connect(options).trimEnd())
    })
  withExample(command, 'kiki connect claude-code --client client_01 --session ext_01')
}
