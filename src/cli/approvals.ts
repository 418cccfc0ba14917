import { type Command, Option } from 'commander'
import { sendAnswer } from './approvals/answer.js'
import { ageWords, clientWords, endWords, nameOf, readQuestion, targetWords } from './approvals/question.js'
import { watchCommand } from './approvals/watch.js'
import { questionText } from './approvals/words.js'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { printable, table } from './output.js'
import { resultOf } from './owner-client.js'

/** `kiki approvals …` (CL-09). */
export function approvalsCommand(program: Command, context: CommandContext): void {
  const approvals = program.command('approvals').description('calls that wait for your answer')
  withExample(approvals, 'kiki approvals watch', 'kiki approvals list')
  listCommand(approvals, context)
  showCommand(approvals, context)
  approveCommand(approvals, context)
  denyCommand(approvals, context)
  watchCommand(approvals, context)
}

function listCommand(approvals: Command, { output }: CommandContext): void {
  const list = approvals.command('list').description('what waits, oldest first')
  list.action(async (_: unknown, command: Command) => {
    const found = await resultOf(ownerOf(command).api.approvals.$get())
    await output.result(found, () => {
      const nobody =
        found.consumers === 0
          ? '\nNobody takes questions now, so new ones are refused: run `kiki approvals watch`.'
          : ''
      if (found.approvals.length === 0) return `Nothing waits.${nobody}`
      const now = Date.now()
      const rows = found.approvals.map((one) => [
        one.id,
        ageWords(one.asked_at, now),
        clientWords(one),
        one.unconfined ? `${one.tool}, no sandbox` : one.tool,
        targetWords(one),
        one.why.reason,
      ])
      return table(['Id', 'Age', 'Client', 'Tool', 'Target', 'Asks because'], rows, output.columns) + nobody
    })
  })
  withExample(list, 'kiki approvals list')
}

function showCommand(approvals: Command, { output }: CommandContext): void {
  const show = approvals.command('show').description('one question with everything to decide it').argument('<id>')
  show.action(async (id: string, _: unknown, command: Command) => {
    const question = await readQuestion(ownerOf(command), id)
    await output.result(question, () => {
      const open = question.status === 'waiting_approval' && question.answer === null
      return `${questionText(question)}\n\n${open ? 'It waits for your answer.' : `It was ${endWords(question)}.`}`
    })
  })
  withExample(show, 'kiki approvals show apr_01')
}

interface ApproveFlags {
  session?: boolean
  always?: boolean
}

function approveCommand(approvals: Command, { output }: CommandContext): void {
  const approve = approvals.command('approve').description('let a call run, once where nothing else is said')
  approve
    .argument('<id>')
    .option('--session', 'and the same kind for the rest of its session')
    .addOption(new Option('--always', 'and always: adds a rule').conflicts('session'))
    .action(async (id: string, { session, always }: ApproveFlags, command: Command) => {
      const scope = always ? 'always' : session ? 'session' : 'once'
      const done = await sendAnswer(ownerOf(command), id, { verb: 'approve', scope })
      await output.result(done, () => answered(id, done, scope === 'once' ? [] : done.covers, scope))
    })
  withExample(approve, 'kiki approvals approve apr_01', 'kiki approvals approve apr_01 --session')
}

function denyCommand(approvals: Command, { output }: CommandContext): void {
  const deny = approvals.command('deny').description('refuse a call; nothing of it runs').argument('<id>')
  deny
    .option('--message <text>', 'what the client is told, up to 2000 characters')
    .action(async (id: string, { message }: { message?: string }, command: Command) => {
      const done = await sendAnswer(ownerOf(command), id, { verb: 'deny', message })
      await output.result(done, () => answered(id, done, [], 'once'))
    })
  withExample(deny, "kiki approvals deny apr_01 --message 'Use the staging copy.'")
}

type Done = Awaited<ReturnType<typeof sendAnswer>>

/** Who comes second changes nothing and is told so (AP-06). */
function answered(id: string, done: Done, covers: Done['covers'], scope: string): string {
  const words = `${id} (${nameOf(done)}) was ${endWords(done)}`
  if (!done.changed) return printable(`Nothing was changed: ${words} before.`)
  const more = covers.map(({ kind, rule }) => (scope === 'always' ? `New rule: allow ${rule}` : `Covered: ${kind}`))
  return [`${words}.`, ...more].map((line) => printable(line)).join('\n')
}
