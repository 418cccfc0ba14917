import { patchProblem, type Reader } from './patch-format.js'

export interface GitHeader {
  /** From the `diff --git` line, where they can be told apart. */
  names: { old: string; fresh: string } | undefined
  isNew: boolean
  isDeleted: boolean
  executable?: boolean
  /** The mode is that of a new file, or another than before. */
  modeChanges: boolean
  renamed?: { from: string; to: string; copy: boolean }
}

const FIELD =
  /^(old mode|new mode|deleted file mode|new file mode|copy from|copy to|rename from|rename to|similarity index|dissimilarity index|index) (.*?)\r?$/

/**
 * Reads `diff --git` and the lines that say more about the file.
 * @throws KikiError `invalid_arguments` for links, submodules and names that are not UTF-8.
 */
export function readGitHeader(reader: Reader): GitHeader {
  const line = reader.lines[reader.at++] ?? ''
  const fields = new Map<string, string>()
  for (;;) {
    const found = FIELD.exec(reader.lines[reader.at] ?? '')
    if (found === null) break
    reader.at++
    fields.set(found[1] ?? '', found[2] ?? '')
    requireFile(found[2] ?? '', found[1] ?? '', reader.at)
  }
  const header: GitHeader = {
    names: namesOf(line.slice('diff --git '.length).trimEnd()),
    isNew: fields.has('new file mode'),
    isDeleted: fields.has('deleted file mode'),
    modeChanges: fields.has('new file mode') || fields.has('new mode'),
  }
  const mode = fields.get('new file mode') ?? fields.get('new mode')
  if (mode !== undefined) header.executable = (Number.parseInt(mode, 8) & 0o100) !== 0
  for (const kind of ['rename', 'copy'] as const) {
    const [from, to] = [fields.get(`${kind} from`), fields.get(`${kind} to`)]
    if (from !== undefined && to !== undefined) {
      header.renamed = { from: unquote(from, reader.at), to: unquote(to, reader.at), copy: kind === 'copy' }
    }
  }
  return header
}

/** Of git's kinds of entries only files are patched: a link's "content" is where it leads. */
function requireFile(value: string, field: string, at: number): void {
  const mode = field === 'index' ? / (\d{6})$/.exec(value)?.[1] : field.includes('mode') ? value.trim() : undefined
  if (mode === undefined || mode.startsWith('100')) return
  const what = mode === '120000' ? 'a symbolic link' : mode === '160000' ? 'a submodule' : `of mode ${mode}`
  throw patchProblem(at, `the entry is ${what}, and only files are patched`, 'Leave it out of the patch.')
}

/** `a/NAME b/NAME`: where names hold spaces, both being equal tells where the second begins. */
function namesOf(rest: string): { old: string; fresh: string } | undefined {
  const quoted = /^("(?:[^"\\]|\\.)*") (.+)$/.exec(rest) ?? /^(.+) ("(?:[^"\\]|\\.)*")$/.exec(rest)
  if (quoted !== null) return { old: quoted[1] ?? '', fresh: quoted[2] ?? '' }
  const middle = (rest.length - 1) / 2
  const halves = { old: rest.slice(0, middle), fresh: rest.slice(middle + 1) }
  if (rest[middle] === ' ' && withoutFirst(halves.old) === withoutFirst(halves.fresh)) return halves
  const parts = rest.split(' ')
  return parts.length === 2 ? { old: parts[0] ?? '', fresh: parts[1] ?? '' } : undefined
}

function withoutFirst(name: string): string {
  return name.replace(/^[a-z]\//, '')
}

/** Whether `---` and `+++` stand here. */
export function isNamePair(lines: readonly string[], at: number): boolean {
  return lines[at]?.startsWith('--- ') === true && lines[at + 1]?.startsWith('+++ ') === true
}

/** Names without what diffs put before them; undefined for `/dev/null`. `a/` and `b/` are, of git also the letters of `diff.mnemonicPrefix`. */
export function strippedPair(pair: { old: string; fresh: string }, git: boolean): { old?: string; fresh?: string } {
  const [old, fresh] = [fileName(pair.old), fileName(pair.fresh)]
  const prefixes: [RegExp, RegExp] = git ? [/^[aciow]\//, /^[bciow]\//] : [/^a\//, /^b\//]
  const strips = (name: string | undefined, prefix: RegExp) => name === undefined || prefix.test(name)
  const both = strips(old, prefixes[0]) && strips(fresh, prefixes[1])
  const names = { old: both ? old?.slice(2) : old, fresh: both ? fresh?.slice(2) : fresh }
  return {
    ...(names.old === undefined ? {} : { old: names.old }),
    ...(names.fresh === undefined ? {} : { fresh: names.fresh }),
  }
}

/** For messages about a file that cannot be patched. */
export function nameInHeader(pair: { old: string; fresh: string } | undefined, header: GitHeader): string | undefined {
  if (header.renamed !== undefined) return header.renamed.to
  const names = pair && strippedPair(pair, true)
  return names?.fresh ?? names?.old
}

/** A name in a header: a tab ends it (a time may follow), and git quotes odd ones. */
function fileName(text: string): string | undefined {
  const name = text.startsWith('"')
    ? unquote(text.trimEnd(), undefined)
    : (text.split('\t')[0] ?? '').replace(/\r$/, '')
  return name === '/dev/null' ? undefined : name
}

const ESCAPES: Readonly<Record<string, number>> = { a: 7, b: 8, t: 9, n: 10, v: 11, f: 12, r: 13, '"': 34, '\\': 92 }

/** Undoes git's quotes, in which bytes stand as octal numbers. */
function unquote(text: string, at: number | undefined): string {
  const quoted = /^"((?:[^"\\]|\\.)*)"/.exec(text)?.[1]
  if (quoted === undefined) return text
  const bytes: Buffer[] = []
  for (const part of quoted.match(/\\[0-7]{3}|\\.|[^\\]+/gs) ?? []) {
    if (!part.startsWith('\\')) bytes.push(Buffer.from(part))
    else bytes.push(Buffer.from([ESCAPES[part[1] ?? ''] ?? Number.parseInt(part.slice(1), 8) & 0xff]))
  }
  const raw = Buffer.concat(bytes)
  const name = raw.toString()
  if (!Buffer.from(name).equals(raw)) throw patchProblem(at, 'a name in it is not UTF-8')
  return name
}
