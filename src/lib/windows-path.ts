/** A Windows path in its one plain spelling, or why it has none that could be trusted. */
export type PlainPath = { path: string } | { problem: string }

/** Devices, whatever their extension and whatever folder they are named in. */
const DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[0-9\u00b9\u00b2\u00b3])$/i

/**
 * `C:\a\b`, `\\server\share\a` or `a\b`: with backslashes, a large drive letter, without `\\?\`, `.`, `..` and the final dots and
 * spaces that Windows leaves out (PA-04). Letter cases of names stay: the file system knows the stored ones.
 * Refused is what means another file than it seems to: devices and their namespaces, streams (`a:b`), paths that depend on a current
 * drive or its folder, and names that only `\\?\` can reach.
 */
export function plainWindowsPath(path: string): PlainPath {
  const exact = /^[\\/]{2}\?[\\/]/.test(path)
  const opened = /^[\\/]{2}[?.][\\/](?:unc[\\/](.*)|([a-z]:(?:[\\/].*)?))$/is.exec(path)
  if (/^[\\/]{2}[?.](?:[\\/]|$)/.test(path) && opened === null) return { problem: 'names a device of Windows' }
  const [, share, drivePath] = opened ?? []
  const plain = share === undefined ? (drivePath ?? path) : `\\\\${share}`
  const unc = /^[\\/]{2}([^\\/]+)[\\/]+([^\\/]+)(.*)$/s.exec(plain)
  if (unc !== null) return joined(`\\\\${unc[1]}\\${unc[2]}`, namesIn(unc[3] ?? ''), exact)
  if (/^[\\/]{2}/.test(plain)) return { problem: 'names no share of a server' }
  const drive = /^([a-z]):(.*)$/is.exec(plain)
  if (drive === null) {
    if (/^[\\/]/.test(plain)) return { problem: 'depends on the current drive' }
    return relativeOf(namesIn(plain))
  }
  const rest = drive[2] ?? ''
  if (!/^[\\/]/.test(rest) && !(opened !== null && rest === ''))
    return { problem: 'depends on the current folder of a drive' }
  return joined(`${(drive[1] ?? '').toUpperCase()}:`, namesIn(rest), exact)
}

function namesIn(text: string): string[] {
  return text.split(/[\\/]+/).filter((name) => name !== '')
}

/** From a drive or share, which `..` does not leave. */
function joined(root: string, names: readonly string[], exact: boolean): PlainPath {
  const kept: string[] = []
  for (const name of names) {
    if (name === '..' && !exact) kept.pop()
    else if (name !== '.' || exact) {
      const read = plainName(name, exact)
      if (typeof read !== 'string') return read
      kept.push(read)
    }
  }
  return { path: kept.length === 0 ? `${root}\\` : [root, ...kept].join('\\') }
}

/** `..` stays: where it leads is seen by whoever knows the folder. */
function relativeOf(names: readonly string[]): PlainPath {
  const kept: string[] = []
  for (const name of names) {
    if (name === '.') continue
    const read = name === '..' ? name : plainName(name, false)
    if (typeof read !== 'string') return read
    kept.push(read)
  }
  return { path: kept.length === 0 ? '.' : kept.join('\\') }
}

function plainName(name: string, exact: boolean): string | { problem: string } {
  if (name.includes(':')) return { problem: `names a stream of a file ("${name}")` }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Windows takes none in a name.
  if (/[<>"|?*\u0000-\u001f]/.test(name))
    return { problem: `holds a sign that no name on Windows may hold ("${name}")` }
  const plain = name.replace(/[. ]+$/, '')
  if (plain === '') return { problem: `holds a name of dots and spaces only ("${name}")` }
  if (exact && plain !== name) return { problem: `holds a name that other programs cannot reach ("${name}")` }
  const stem = plain.split('.')[0] ?? plain
  if (DEVICE.test(stem.trimEnd())) return { problem: `names a device of Windows ("${name}")` }
  return plain
}
