import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Command, InvalidArgumentError } from 'commander'
import { z } from 'zod'
import { KikiError, messageOf, systemCode } from '../lib/errors.js'
import { type CommandContext, ownerOf, withExample } from './context.js'
import { table, textOf } from './output.js'
import { resultOf } from './owner-client.js'
import { wholeNumber } from './values.js'

interface ListFlags {
  connection?: string
  session?: string
  action?: string
  tool?: string
  status?: string
  since?: string
  limit: number
  before?: number
}

/** `kiki audit [export|verify]` (CL-17, GU-68). */
export function auditCommand(program: Command, context: CommandContext): void {
  const audit = program.command('audit').description('the log of who did what and by which rule')
  withExample(audit, 'kiki audit --connection client_01', 'kiki audit verify')
  listCommand(audit, context)
  exportCommand(audit, context)
  verifyCommand(audit, context)
}

function listCommand(audit: Command, { output }: CommandContext): void {
  const list = audit
    .command('list', { isDefault: true })
    .description('entries, newest first; also without the word list')
  list
    .option('--connection <id>', 'only of this connection')
    .option('--session <ref>', 'only of this session')
    .option('--action <name>', 'only of this kind, such as call, refused or connection.revoked')
    .option('--tool <name>', 'only calls of this tool')
    .option('--status <status>', 'only with this outcome')
    .option('--since <time>', 'only since this date or RFC 3339 time')
    .option('--limit <n>', 'how many (1 to 200)', wholeNumber, 50)
    .option('--before <n>', 'only older ones, as the end of a list says', wholeNumber)
    .action(async ({ limit, before, ...filter }: ListFlags, command: Command) => {
      const query = { ...filter, limit: String(limit), ...(before !== undefined && { before: String(before) }) }
      const found = await resultOf(ownerOf(command).api.audit.$get({ query }))
      await output.result(found, () => {
        if (found.entries.length === 0) return 'No entries.'
        const rows = found.entries.map((one) => {
          const outcome = [one.status, one.error_code].filter((part) => part !== null).join(': ')
          const whose = one.operation ?? one.session ?? one.connection
          const what = one.tool === null ? one.action : `${one.action} ${one.tool}`
          return [one.seq, one.at, one.actor, what, whose, outcome, one.rule].map(textOf)
        })
        const more = 'next_before' in found ? `\nOlder: add --before ${found.next_before}` : ''
        return table(['Entry', 'At', 'By', 'Did', 'On', 'Outcome', 'Rule'], rows, output.columns) + more
      })
    })
  withExample(list, 'kiki audit --session ext_01 --limit 20')
}

function exportCommand(audit: Command, { output }: CommandContext): void {
  const exporting = audit
    .command('export')
    .description('the whole log as JSON Lines; the last line is its head')
    .option('--file <file>', 'into a new file instead of standard output')
  exporting.action(async ({ file }: { file?: string }, command: Command) => {
    if (file === undefined && command.optsWithGlobals<{ json?: boolean }>().json) {
      throw new KikiError('invalid_arguments', 'An export is many JSON values, and --json prints one.', {
        hint: 'Leave --json out, or add --file.',
      })
    }
    const answer = await ownerOf(command).api.audit.export.$get()
    if (!answer.ok) await resultOf(Promise.resolve(answer))
    if (file === undefined) return void (await copy(answer, output.piece))
    const path = resolve(file)
    const head = await intoFile(path, (write) => copy(answer, write))
    await output.result(
      { file: path, entries: head.seq, head },
      () => `Exported ${head.seq} entries into ${path}. Keep its head elsewhere:\n  ${head.seq}:${head.mac}`,
    )
  })
  withExample(exporting, 'kiki audit export --file audit.jsonl')
}

function verifyCommand(audit: Command, { output }: CommandContext): void {
  const verify = audit
    .command('verify')
    .description('read the log through: whether an entry was changed, removed or cut off')
    .option('--head <seq:mac>', 'also hold it to the head of an earlier export', exportedHead)
  verify.action(async ({ head }: { head?: string }, command: Command) => {
    const query = head === undefined ? {} : { head }
    const found = await resultOf(ownerOf(command).api.audit.verify.$get({ query }))
    if (!found.ok) throw notWhole(found)
    await output.result(
      found,
      () => `The log is whole: ${found.entries} entries. Its head:\n  ${found.head.seq}:${found.head.mac}`,
    )
  })
  withExample(verify, 'kiki audit verify')
}

type Found = { entries: number; problem: { message: string } | null; alarms: number[] }

function notWhole(found: Found): KikiError {
  const alarms = found.alarms.map(
    (seq) => `Entry ${seq} notes that the end of the log had been cut off before that start.`,
  )
  const said = [...(found.problem === null ? [] : [found.problem.message]), ...alarms].join(' ')
  return new KikiError('conflict', `The audit log is not whole. ${said}`, {
    hint: `Entries 1 to ${found.entries} fit together. Compare with an earlier export, and see who could write to the home.`,
    data: { ...found },
  })
}

const headLine = z.object({ head: z.object({ seq: z.number().int(), mac: z.string() }) })

/** Hands an export on as it comes. @returns its head. @throws KikiError `upstream_unavailable` where its end did not come. */
async function copy(
  answer: { body: ReadableStream<Uint8Array> | null },
  write: (text: string) => void | Promise<void>,
): Promise<{ seq: number; mac: string }> {
  const decoder = new TextDecoder()
  let line = ''
  try {
    for await (const bytes of answer.body ?? []) {
      const text = decoder.decode(bytes, { stream: true })
      await write(text)
      const lines = (line + text).split('\n')
      // The last line can be the head; what follows it is not whole yet.
      line = lines.slice(-2).join('\n')
    }
    return headLine.parse(JSON.parse(line)).head
  } catch (cause) {
    if (cause instanceof KikiError) throw cause
    throw new KikiError('upstream_unavailable', 'The export broke off: its last line, the head, did not come.', {
      hint: 'See with `kiki status` whether the host still runs, and repeat it.',
      cause,
    })
  }
}

/** A new file of mode 0600; nothing is left of one that was not finished. */
async function intoFile<T>(path: string, fill: (write: (text: string) => void) => Promise<T>): Promise<T> {
  let fd: number
  try {
    fd = openSync(path, 'wx', 0o600)
  } catch (error) {
    const taken = systemCode(error) === 'EEXIST'
    throw new KikiError(
      'conflict',
      taken ? `${path} is there already.` : `${path} cannot be made: ${messageOf(error)}.`,
      {
        hint: 'Choose another name for the export.',
        cause: error,
      },
    )
  }
  try {
    return await fill((text) => writeAll(fd, Buffer.from(text), path))
  } catch (error) {
    rmSync(path, { force: true })
    throw error
  } finally {
    closeSync(fd)
  }
}

function writeAll(fd: number, bytes: Buffer, path: string): void {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
  } catch (error) {
    throw new KikiError('internal_error', `${path} cannot be written: ${messageOf(error)}.`, {
      hint: 'Free some space, or choose another disk.',
      cause: error,
    })
  }
}

function exportedHead(text: string): string {
  if (/^\d{1,15}:[0-9a-f]{64}$/.test(text)) return text
  throw new InvalidArgumentError('Give the head as SEQ:MAC, as an export ends with it.')
}
