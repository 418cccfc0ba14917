import { type Command, InvalidArgumentError } from 'commander'
import { isObject } from '../lib/json.js'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { cancelledWords, facts, table, textOf } from './output.js'
import { resultOf } from './owner-client.js'
import { wholeNumber } from './values.js'

/** `kiki policy …` (PO-06, CL-17): why calls run, wait or are refused, and the standing rules. */
export function policyCommand(program: Command, context: CommandContext): void {
  const policy = program.command('policy').description('why a call runs, asks or is refused, and the standing rules')
  withExample(policy, "kiki policy explain --session ext_01 Bash 'git push'", 'kiki policy rules')
  explainCommand(policy, context)
  rulesCommand(policy, context)
  removeCommand(policy, context)
}

function explainCommand(policy: Command, { output }: CommandContext): void {
  const explain = policy.command('explain').description('what would be decided about a call now; nothing runs')
  explain
    .requiredOption('--session <ref>', 'the session that would make the call')
    .argument('<tool>')
    .argument('[argument]', 'a path, a command, or all arguments as a JSON object', argumentOf)
    .action(async (tool: string, argument: Argument | undefined, flags: { session: string }, command: Command) => {
      const json = { session: flags.session, tool, ...(argument !== undefined && { argument }) }
      const found = await resultOf(ownerOf(command).api.policy.explain.$post({ json }))
      await output.result(found, () => explanation(found, output.columns))
    })
  withExample(
    explain,
    "kiki policy explain --session ext_01 Bash 'git push'",
    'kiki policy explain --session ext_01 Edit src/app.ts',
  )
}

type Argument = string | Record<string, unknown>

/** A text that begins as an object does and is none is a command: `{ echo; }`. */
function argumentOf(text: string): Argument {
  if (text === '') throw new InvalidArgumentError('Give a path, a command or a JSON object, or leave it out.')
  if (!text.startsWith('{')) return text
  try {
    const value: unknown = JSON.parse(text)
    return isObject(value) ? value : text
  } catch {
    return text
  }
}

interface Explanation {
  tool: string
  decision: 'allow' | 'ask' | 'deny'
  by: string
  reason: string
  covers: string[]
  command?: { classes: string[]; commands: { text: string; classes: string[]; via: string[] }[]; opaque?: string }
}

const DECISIONS = { allow: 'runs', ask: 'asks you', deny: 'is refused' }

function explanation(found: Explanation, columns: number | undefined): string {
  const { tool, decision, by, reason, covers, command } = found
  const shown = facts(
    {
      Decision: `${decision}: ${tool} ${DECISIONS[decision]}`,
      'Decided by': by,
      Because: reason,
      Classes: command?.classes,
      'Cannot be taken apart': command?.opaque,
      'Approving covers': decision === 'ask' ? coverWords(covers) : undefined,
    },
    columns,
  )
  if (command === undefined || command.commands.length === 0) return shown
  const rows = command.commands.map(({ text, classes, via }) => [text, textOf(classes), textOf(via)])
  return `${shown}\n${table(['Command', 'Classes', 'Run by'], rows, columns)}`
}

function coverWords(covers: readonly string[]): string {
  return covers.length === 0 ? 'this one call only' : `once this call; for the session or always: ${covers.join(', ')}`
}

function rulesCommand(policy: Command, { output }: CommandContext): void {
  const rules = policy.command('rules').description('the rules of config.toml, and yours from earlier answers')
  rules.action(async (_: unknown, command: Command) => {
    const found = await resultOf(ownerOf(command).api.policy.rules.$get())
    await output.result(found, () => {
      if (found.rules.length === 0) return 'No standing rules: the modes of connection and session decide.'
      const made = new Map(found.own.map(({ id, made_at }) => [`owner rule ${id}`, made_at]))
      const rows = found.rules.map(({ decision, pattern, connection, workspace, from }) =>
        [decision, pattern, connection ?? 'every', workspace ?? 'every', from, made.get(from)].map(textOf),
      )
      const head = ['Decision', 'Pattern', 'Connection', 'Workspace', 'From', 'Made at']
      const hint = found.own.length === 0 ? '' : '\nRemove an owner rule with `kiki policy remove NUMBER`.'
      return table(head, rows, output.columns) + hint
    })
  })
  withExample(rules, 'kiki policy rules')
}

function removeCommand(policy: Command, { output }: CommandContext): void {
  const remove = policy.command('remove').description('remove a rule that an answer of yours made')
  remove
    .argument('<number>', 'as `kiki policy rules` shows it', wholeNumber)
    .action(async (id: number, _: unknown, command: Command) => {
      const param = { id: String(id) }
      const done = await resultOf(ownerOf(command).api.policy.rules[':id'].$delete({ param }))
      await output.result(done, () => `Owner rule ${id} is removed. ${cancelledWords(done.cancelled)}`)
    })
  withExample(remove, 'kiki policy remove 3')
}
