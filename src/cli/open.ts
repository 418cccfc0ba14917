import { spawn } from 'node:child_process'
import { hostname, userInfo } from 'node:os'
import type { Command } from 'commander'
import { environment } from '../config/environment.js'
import { KikiError } from '../lib/errors.js'
import { loginUrl, openerCommand, redirectFile, sshInstructions, wayToOpen } from '../owner/open.js'
import { type CommandContext, homeOf, nextCommand, ownerOf, withExample } from './context.js'
import { resultOf } from './owner-client.js'

/** `kiki open` (CL-03): the settings page, signed in. With `--json` nothing is opened: the link is the result. */
export function openCommand(program: Command, { output }: CommandContext): void {
  const open = program.command('open').description('open the settings page, signed in')
  open.action(async (_: unknown, command: Command) => {
    const paths = homeOf(command)
    const { api } = ownerOf(command)
    const { owner_url: ownerUrl } = await resultOf(api.status.$get())
    const { code, expires_at } = await resultOf(api.login.codes.$post())
    const url = loginUrl(ownerUrl, code)
    const json = command.optsWithGlobals<{ json?: boolean }>().json === true
    const way = json ? 'print' : wayToOpen({ platform: process.platform, env: environment() })
    if (way === 'browser') await openBrowser(paths.dir, url, nextCommand(command, 'open --json'))
    await output.result({ owner_url: ownerUrl, login_url: url, expires_at }, () => {
      if (way === 'browser') return `The settings page is opening in your browser (${ownerUrl}).`
      if (way === 'ssh') return sshInstructions({ url, user: userInfo().username, host: hostname() }).join('\n')
      return `Open this link within 2 minutes. It works once:\n  ${url}`
    })
  })
  withExample(open, 'kiki open')
}

/**
 * Starts the owner's browser on a file that leads to `url`. The file stays until the next `kiki open`: nobody says when a browser
 * has read it, and its code is worthless after one use or two minutes.
 */
async function openBrowser(home: string, url: string, other: string): Promise<void> {
  const { file, remove } = redirectFile({ home, url })
  const { command, args } = openerCommand(process.platform, file)
  const child = spawn(command, args, { stdio: 'ignore', windowsHide: true })
  const failure = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('exit', (code) => resolve(code === 0 ? undefined : `${command} ended with exit code ${code}`))
  })
  if (failure === undefined) return
  remove()
  throw new KikiError('internal_error', `No browser could be started: ${failure}.`, {
    hint: `Run \`${other}\` and open its login_url in a browser on this machine.`,
  })
}
