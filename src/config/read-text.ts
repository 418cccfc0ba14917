import { lstat, readFile, stat } from 'node:fs/promises'
import { systemCode } from '../lib/errors.js'
import { ConfigError, type ConfigProblem } from './problems.js'

/** Far above any real file, and soon read. */
const MAX_FILE_BYTES = 1_048_576

/**
 * The text of a configuration file of at most 1 MiB (a byte order mark stays), or undefined where there is no file.
 * @throws ConfigError when something is there that cannot be read as UTF-8 text.
 */
export async function readText(file: string): Promise<string | undefined> {
  const bytes = await readBytes(file)
  if (bytes === undefined) return undefined
  const [a, b] = bytes
  if ((a === 0xff && b === 0xfe) || (a === 0xfe && b === 0xff)) {
    throw fileError(file, 'the file is UTF-16 text', 'save it as UTF-8')
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw fileError(file, 'the file is not UTF-8 text from here on', 'save it as UTF-8', firstBadCharacter(bytes))
  }
}

async function readBytes(file: string): Promise<Uint8Array | undefined> {
  try {
    const facts = await stat(file)
    if (!facts.isFile()) throw fileError(file, 'not a regular file', 'put a text file there, or remove it')
    if (facts.size > MAX_FILE_BYTES) {
      throw fileError(file, `the file is larger than ${MAX_FILE_BYTES} bytes`, 'make it smaller')
    }
    return await readFile(file)
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const code = systemCode(error)
    if (code === undefined) throw error
    // A file stands above it: no configuration is there, and whoever makes the home says what is wrong with it.
    if (code === 'ENOTDIR') return undefined
    if (code === 'ENOENT' && !(await isLink(file))) return undefined
    if (code === 'ENOENT') throw fileError(file, 'a link to a file that does not exist', 'mend or remove the link')
    throw fileError(
      file,
      `the file cannot be read (${code})`,
      'make it readable to you, or remove it to use the defaults',
    )
  }
}

async function isLink(file: string): Promise<boolean> {
  try {
    return (await lstat(file)).isSymbolicLink()
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

function firstBadCharacter(bytes: Uint8Array): { line: number; column: number } {
  let good = 0
  for (let bad = bytes.length + 1; bad - good > 1; ) {
    const middle = (good + bad) >> 1
    if (decodes(bytes.subarray(0, middle))) good = middle
    else bad = middle
  }
  const lines = new TextDecoder().decode(bytes.subarray(0, good), { stream: true }).split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
}

function decodes(prefix: Uint8Array): boolean {
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(prefix, { stream: true })
    return true
  } catch {
    return false
  }
}

function fileError(file: string, what: string, hint: string, place: Partial<ConfigProblem> = {}): ConfigError {
  return new ConfigError([{ severity: 'error', source: file, ...place, message: what, hint }])
}
