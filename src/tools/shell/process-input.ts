import { z } from 'zod'
import { KikiError } from '../../lib/errors.js'
import { END_OF_INPUT } from '../../processes/background.js'
import { COMMAND_SIGNALS } from '../../processes/command.js'
import { defineTool, text } from '../tool.js'

const input = z.strictObject({
  process_id: z.string(),
  text: z
    .string()
    .min(1)
    .max(100_000)
    .optional()
    .describe('Typed as it is; end lines with \\n. \\u0004 at the end closes the input.'),
  signal: z.enum(COMMAND_SIGNALS).optional().describe('SIGKILL ends all of it for certain.'),
})

type Input = z.infer<typeof input>

/** SH-03. What is typed may be commands of a shell that runs there: rules about `Bash` see it too. */
export const processInput = defineTool<Input>({
  name: 'ProcessInput',
  title: 'Talk to a background process',
  description: 'Types text into a background process, or sends it a signal.',
  effect: 'execute',
  family: 'shell',
  countsAs: ['Bash'],
  input,
  command: ({ text: typed = ':' }) => (typed.endsWith(END_OF_INPUT) ? typed.slice(0, -1) : typed),
  async run({ shell, session }, { process_id, text: typed, signal }) {
    if (typed === undefined && signal === undefined) {
      throw new KikiError('invalid_arguments', 'There is neither text nor a signal to send.', {
        hint: 'Give one of both.',
      })
    }
    const row = shell.background.require(session.ref, process_id)
    if (typed !== undefined) await shell.background.input(row, typed)
    if (signal !== undefined) shell.background.signal(row, signal)
    const sent = [
      ...(typed === undefined ? [] : [`${typed.length} characters`]),
      ...(signal === undefined ? [] : [signal]),
    ]
    return text(`Sent ${sent.join(' and ')} to ${process_id}. See what it does with ProcessOutput.`, { process_id })
  },
})
