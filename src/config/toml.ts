import { parse, TomlError } from 'smol-toml'
import { formatKey } from './keys.js'
import { ConfigError, type ConfigProblem } from './problems.js'
import { type KeyPath, MAX_TOML_DEPTH, pathId, type StringToken, scanToml, type TomlScan } from './toml-scan.js'

/** Line and column, both from 1; columns in UTF-16 units, the byte order mark not counted. */
export interface Position {
  line: number
  column: number
}

export interface TomlDocument {
  data: Record<string, unknown>
  /** Where a key stands; where it is not written, the nearest table above it. */
  locate(path: KeyPath): Position | undefined
  /** Where a value stands; where it is not written, as `locate`. */
  locateValue(path: KeyPath): Position | undefined
}

const PATH_HINT = `a backslash in double quotes begins an escape; write Windows paths in single quotes, such as 'C:\\Users\\me'`

/**
 * Reads TOML 1.0 text (byte order mark and CRLF accepted, FC-C07).
 * @throws ConfigError with line, column and key (CF-02), also for a Windows path whose backslashes happen to be valid escapes (FC-C02).
 */
export function parseToml(source: string, original: string): TomlDocument {
  const text = original.startsWith('\ufeff') ? original.slice(1) : original
  const page: Page = { source, scan: scanToml(text), lines: createLines(text) }
  const data = parseOrThrow(text, page)
  const paths = page.scan.basicStrings.filter((token) => badBackslash(token) !== undefined)
  if (paths.length > 0) throw new ConfigError(paths.map((token) => pathProblem(page, token)))
  const { keys, values } = page.scan
  return {
    data,
    locate: (path) => nearestPosition(page.lines, [keys], path),
    locateValue: (path) => nearestPosition(page.lines, [values, keys], path),
  }
}

interface Page {
  source: string
  scan: TomlScan
  lines: Lines
}

function parseOrThrow(text: string, page: Page): Record<string, unknown> {
  try {
    return parse(text, { maxDepth: MAX_TOML_DEPTH, unsafeKeyBehaviour: 'throw' })
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    throw new ConfigError([syntaxProblem(page, error)])
  }
}

function syntaxProblem(page: Page, error: TomlError): ConfigProblem {
  const { source, scan, lines } = page
  const { line, column } = error
  const token = scan.basicStrings.find((one) => lines.holds(line, one.at) && badBackslash(one) !== undefined)
  if (token) return pathProblem(page, token)
  const what = (error.message.split('\n')[0] ?? '').replace('Invalid TOML document: ', '')
  const mention = scan.mentions.findLast((one) => lines.holds(line, one.at))
  const problem: ConfigProblem = { severity: 'error', source, line, column, message: `not valid TOML: ${what}` }
  if (mention) problem.key = formatKey(mention.path)
  if (/escape/.test(what)) problem.hint = PATH_HINT
  else if (/redefine/.test(what) && mention) {
    const first = scan.keys.get(pathId(mention.path))
    const where = first === undefined || lines.holds(line, first) ? '' : ` (first on line ${lines.at(first).line})`
    problem.hint = `${problem.key} may be written once${where}; move what belongs to it together`
  }
  return problem
}

function pathProblem({ source, lines }: Page, token: StringToken): ConfigProblem {
  const { line, column } = lines.at(token.at + 1 + (badBackslash(token) ?? 0))
  const key = formatKey(token.path)
  const message = `${key} holds a Windows path in double quotes, where a backslash begins an escape`
  // The proposal is the owner's own path, unless it cannot stand in single quotes.
  const hint = /['\n]/.test(token.raw)
    ? PATH_HINT
    : `write it in single quotes: '${token.raw.replaceAll('\\\\', '\\')}'`
  return { severity: 'error', source, line, column, key, message, hint }
}

/**
 * Offset, within the string, of a backslash that was meant as a separator of a Windows path:
 * after a drive (`C:\x`, also within `Read(C:\x)`), or anywhere in a word that begins as a path with doubled ones.
 */
function badBackslash({ raw }: StringToken): number | undefined {
  const drive = /(?:^|[("'=,;])[A-Za-z]:\\(?!\\)/.exec(raw)
  if (drive) return drive.index + drive[0].length - 1
  if (/\s/.test(raw) || !/(?:^|[("'=,;])(?:[A-Za-z]:)?\\\\/.test(raw)) return undefined
  const single = /(?<!\\)(?:\\\\)*\\(?![\\"])/.exec(raw)
  return single ? single.index + single[0].length - 1 : undefined
}

function nearestPosition(
  lines: Lines,
  maps: readonly ReadonlyMap<string, number>[],
  path: KeyPath,
): Position | undefined {
  for (let length = path.length; length > 0; length--) {
    const id = pathId(path.slice(0, length))
    for (const map of maps) {
      const at = map.get(id)
      if (at !== undefined) return lines.at(at)
    }
  }
  return undefined
}

interface Lines {
  at(offset: number): Position
  /** Whether an offset lies on a line (from 1). */
  holds(line: number, offset: number): boolean
}

function createLines(text: string): Lines {
  const starts = [0]
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) starts.push(end + 1)
  return {
    at(offset) {
      let low = 0
      for (let high = starts.length; high - low > 1; ) {
        const middle = (low + high) >> 1
        if ((starts[middle] ?? 0) <= offset) low = middle
        else high = middle
      }
      return { line: low + 1, column: offset - (starts[low] ?? 0) + 1 }
    },
    holds: (line, offset) => offset >= (starts[line - 1] ?? Infinity) && offset < (starts[line] ?? Infinity),
  }
}
