/** One word of a command line, quoted for a POSIX shell, or as Windows programs take their command line apart. */
export function shellWord(word: string, platform: NodeJS.Platform): string {
  if (/^[A-Za-z0-9_@%+=:,./-]+$/.test(word)) return word
  if (platform !== 'win32') return `'${word.replaceAll("'", "'\\''")}'`
  return `"${word.replace(/(\\*)("|$)/g, (_, slashes: string, end: string) => slashes + slashes + (end && '\\"'))}"`
}
