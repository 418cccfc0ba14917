import type { Command } from 'commander'
import { KikiError } from '../lib/errors.js'
import { type CommandContext, confirm, nextCommand, ownerOf, withExample, yoloNote } from './context.js'
import { addGrantFlags, type GrantFlags, grantOf } from './grant-flags.js'
import { cancelledWords, facts, printable, table, textOf } from './output.js'
import { resultOf } from './owner-client.js'
import { nullable } from './values.js'

/** `kiki connections …` (CL-04, CL-05). */
export function connectionsCommand(program: Command, context: CommandContext): void {
  const connections = program.command('connections').description('clients and what each of them may do')
  withExample(connections, 'kiki connections add --name Claude --preset editor', 'kiki connections list')
  addCommand(connections, context)
  listCommand(connections, context)
  showCommand(connections, context)
  setCommand(connections, context)
  for (const verb of ['pause', 'resume', 'revoke'] as const) statusVerb(connections, context, verb)
  deleteCommand(connections, context)
}

function addCommand(connections: Command, { output }: CommandContext): void {
  const add = connections.command('add').description('authorise a client; without flags it may only look (observer)')
  addGrantFlags(add.requiredOption('--name <name>', 'name of 1 to 100 characters'))
  add.action(async (flags: GrantFlags & { name: string }, command: Command) => {
    const { name, kind, expires } = flags
    const json = {
      name,
      grant: grantOf(flags),
      ...(kind !== undefined && { kind }),
      ...(expires !== undefined && { expires_at: nullable(expires) }),
    }
    const made = await resultOf(ownerOf(command).api.connections.$post({ json }))
    await output.result(made, () => {
      const { families_without_tools: empty, ...shown } = made
      const token = made.token === undefined ? [] : ['The token is shown this once; keep it where the client needs it.']
      const none = empty.length === 0 ? [] : [`Granted, but without any tool in this version: ${empty.join(', ')}.`]
      const yolo = yoloNote(flags.ceiling, flags.templateMode)
      return [facts(shown, output.columns), ...token, ...none, ...yolo, ...nextSteps(command, made)].join('\n')
    })
  })
  withExample(
    add,
    'kiki connections add --name Claude --preset editor --dir ~/notes',
    'kiki connections add --name script --kind token --tools files,search --expires 30d --json',
  )
}

function nextSteps(command: Command, { id, kind }: { id: string; kind: string }): string[] {
  const session = nextCommand(command, `sessions create --connection ${id} --workspace DIR`)
  if (kind !== 'local') {
    return [
      `Next: ${session}`,
      `Clients reach this version through the bridge only, which a ${kind} connection cannot use.`,
    ]
  }
  const connect = nextCommand(command, `connect NAME-OF-CLIENT --client ${id} --session REF`)
  return [`Next: ${session}`, `Then: ${connect}`]
}

function listCommand(connections: Command, { output }: CommandContext): void {
  const list = connections.command('list').description('all connections')
  list.action(async (_: unknown, command: Command) => {
    const found = await resultOf(ownerOf(command).api.connections.$get())
    await output.result(found, () => {
      if (found.connections.length === 0)
        return 'No client is authorised. Begin with `kiki connections add --name NAME`.'
      const rows = found.connections.map((one) =>
        [one.id, one.name, one.kind, one.status, one.ceiling, one.tools, one.last_used_at ?? 'never'].map(textOf),
      )
      return table(['Id', 'Name', 'Kind', 'Status', 'Ceiling', 'Tools', 'Last used'], rows, output.columns)
    })
  })
  withExample(list, 'kiki connections list')
}

function showCommand(connections: Command, { output }: CommandContext): void {
  const show = connections.command('show').description('everything about one connection').argument('<id>')
  show.action(async (id: string, _: unknown, command: Command) => {
    const one = await resultOf(ownerOf(command).api.connections[':id'].$get({ param: { id } }))
    await output.result(one, () => facts(one, output.columns))
  })
  withExample(show, 'kiki connections show client_01')
}

function setCommand(connections: Command, { output }: CommandContext): void {
  const set = connections.command('set').description('change a connection; narrowing it ends its unfinished work')
  addGrantFlags(set.argument('<id>').option('--name <name>', 'name of 1 to 100 characters'))
  set.action(async (id: string, flags: GrantFlags, command: Command) => {
    const { name, expires } = flags
    const route = ownerOf(command).api.connections[':id']
    const before = await resultOf(route.$get({ param: { id } }))
    if (flags.kind !== undefined && flags.kind !== before.kind) {
      throw new KikiError('invalid_arguments', `${id} is of kind ${before.kind}, which cannot be changed.`, {
        hint: `Make another with \`kiki connections add --kind ${flags.kind}\`.`,
      })
    }
    const grant = grantOf(flags, before.template)
    const json = {
      ...(name !== undefined && { name }),
      ...(Object.keys(grant).length > 0 && { grant }),
      ...(expires !== undefined && { expires_at: nullable(expires) }),
    }
    if (Object.keys(json).length === 0) {
      throw new KikiError('invalid_arguments', 'Nothing to change was named.', {
        hint: '`kiki connections set --help` lists what can be changed.',
      })
    }
    const changed = await resultOf(route.$patch({ param: { id }, json }))
    await output.result(changed, () => {
      const { cancelled, ...shown } = changed
      const ended = changed.policy_version === before.policy_version ? [] : [cancelledWords(cancelled)]
      return [facts(shown, output.columns), ...ended, ...yoloNote(flags.ceiling, flags.templateMode)].join('\n')
    })
  })
  withExample(set, 'kiki connections set client_01 --ceiling read-only', 'kiki connections set client_01 --rate none')
}

const VERBS = {
  pause: 'stop new calls; what runs goes on to its end',
  resume: 'let a paused connection work again',
  revoke: 'end a connection for good, with its work and its streams',
}

function statusVerb(connections: Command, { output }: CommandContext, verb: keyof typeof VERBS): void {
  const command = connections.command(verb).description(VERBS[verb]).argument('<id>')
  command.action(async (id: string, _: unknown, self: Command) => {
    const now = await resultOf(ownerOf(self).api.connections[':id'][verb].$post({ param: { id } }))
    await output.result(now, () => {
      const name = printable(`${now.id} (${now.name})`)
      if (!now.changed) return `${name} was already ${now.status}; nothing was changed.`
      return `${name} is ${now.status}.${'cancelled' in now && typeof now.cancelled === 'number' ? ` ${cancelledWords(now.cancelled)}` : ''}`
    })
  })
  withExample(command, `kiki connections ${verb} client_01`)
}

function deleteCommand(connections: Command, context: CommandContext): void {
  const remove = connections.command('delete').description('delete a connection with its sessions').argument('<id>')
  remove.option('--yes', 'do not ask')
  remove.action(async (id: string, flags: { yes?: boolean }, command: Command) => {
    const route = ownerOf(command).api.connections[':id']
    const { name } = await resultOf(route.$get({ param: { id } }))
    await confirm(context, flags, printable(`Deleting ${id} (${name})`))
    const done = await resultOf(route.$delete({ param: { id } }))
    await context.output.result(done, () => printable(`${id} (${name}) is deleted.`))
  })
  withExample(remove, 'kiki connections delete client_01 --yes')
}
