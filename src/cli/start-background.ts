import { spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { addAbortSignal, type Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { environment } from '../config/environment.js'
import { type HomePaths, homeCommand } from '../config/home.js'
import { makeHomeFolder, unusableHome } from '../config/home-folder.js'
import { ERROR_CODES, KikiError } from '../lib/errors.js'
import type { Started } from './start.js'

/** How long a host may take to be ready; it may have to migrate its database first. */
const START_MS = 30_000
const POLL_MS = 50

const startedSchema = z.object({
  pid: z.number(),
  home: z.string(),
  owner_url: z.string(),
  login_url: z.string(),
  socket: z.string(),
  mcp_url: z.string().nullable(),
})
const failedSchema = z.object({
  error: z.object({
    code: z.enum(ERROR_CODES),
    message: z.string(),
    hint: z.string().optional(),
    data: z.record(z.string(), z.unknown()).optional(),
  }),
})

/**
 * Starts `kiki start` in a session of its own and waits for its word that it is ready. Where another host was quicker, that one is
 * waited for: `running` asks for it.
 * @throws KikiError why the host did not start, or `timeout` after 30 s.
 */
export async function startInBackground(
  paths: HomePaths,
  args: readonly string[],
  running: () => Promise<Started | undefined>,
): Promise<Started> {
  const deadline = performance.now() + START_MS
  const said = await firstWords(paths, args)
  const started = startedSchema.safeParse(said)
  if (started.success) return started.data
  const failed = failedSchema.safeParse(said)
  if (!failed.success) throw tooLate(paths)
  const { code, message, hint, data } = failed.data.error
  const failure = new KikiError(code, message, hint === undefined ? {} : { hint })
  // A taken port is a conflict too, but only another host names the home.
  if (code !== 'conflict' || data?.home === undefined) throw failure
  while (performance.now() < deadline) {
    const other = await running()
    if (other) return other
    // The other host is not our child, and nothing announces that it is ready: look again shortly.
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  throw failure
}

/** The JSON that the new host prints when it is ready or has failed; undefined when it ended or was silent for too long. */
async function firstWords(paths: HomePaths, args: readonly string[]): Promise<unknown> {
  // The home first, so that it is named where it cannot be made.
  makeHomeFolder(paths.dir)
  makeHomeFolder(paths.logs)
  const errors = openForErrors(join(paths.logs, 'start.log'))
  const main = fileURLToPath(new URL('../main.js', import.meta.url))
  const child = spawn(process.execPath, [main, 'start', '--json', '--home', paths.dir, ...args], {
    cwd: paths.dir,
    env: environment(),
    detached: true,
    windowsHide: true,
    stdio: ['ignore', 'pipe', errors],
  })
  closeSync(errors)
  child.unref()
  const { stdout } = child
  if (!stdout) throw new Error('The child was started without a pipe.')
  const failed = new Promise<never>((_, reject) => child.once('error', reject))
  const silent = AbortSignal.timeout(START_MS)
  try {
    return await Promise.race([readJson(stdout, silent), failed])
  } finally {
    stdout.destroy()
  }
}

function openForErrors(file: string): number {
  try {
    return openSync(file, 'w', 0o600)
  } catch (error) {
    throw unusableHome(file, error)
  }
}

async function readJson(stream: Readable, signal: AbortSignal): Promise<unknown> {
  let text = ''
  try {
    for await (const chunk of addAbortSignal(signal, stream).setEncoding('utf8')) {
      text += chunk
      const value = wholeJson(text)
      if (value !== undefined) return value
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
  return undefined
}

/** The value once the text is a whole JSON document. */
function wholeJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // More is to come.
  }
}

function tooLate({ logs, dir }: HomePaths): KikiError {
  return new KikiError('timeout', `The host did not become ready within ${START_MS / 1000} s.`, {
    hint: `Look into ${logs}, or run ${homeCommand(dir, 'start')} to see it start.`,
  })
}
