import { z } from 'zod'
import type { Tool } from '../tool.js'

/** As much of `Bash` as rules and explanations need. The tool that runs commands is not in the catalog yet, so nothing can call it. */
export const BASH: Omit<Tool<{ command: string }>, 'run'> = {
  name: 'Bash',
  title: 'Run a command',
  description: 'Runs a shell command.',
  effect: 'execute',
  family: 'shell',
  input: z.strictObject({ command: z.string().min(1) }),
  command: ({ command }) => command,
}
