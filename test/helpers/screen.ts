/** A window as a terminal would show it, for programs that paint whole lines. */
export interface Screen {
  write(text: string): void
  /** Lines of the window, without what is empty at their ends. */
  text(): string
  /** All that came. */
  raw(): string
  title(): string
  bells(): number
  /** Private modes that are on (1049: the other screen, 25: cursor, 2004: marked pastes, 7: line wrapping). */
  modes: ReadonlySet<number>
  /** Control sequences and characters that no frame of Kiki's has. */
  foreign: readonly string[]
}

const ESC = '\u001b'
const TOKEN = new RegExp(
  [
    `${ESC}\\][^\u0007${ESC}]*\u0007`,
    `${ESC}\\[[0-?]*[ -/]*[@-~]`,
    // The beginning of one that goes on in the next piece.
    `${ESC}(?:\\[[0-?]*[ -/]*|\\][^\u0007${ESC}]*)?$`,
    `${ESC}.`,
    '[\\s\\S]',
  ].join('|'),
  'gu',
)

export function createScreen(): Screen {
  const lines: string[] = []
  const modes = new Set([7, 25])
  const foreign: string[] = []
  let raw = ''
  let rest = ''
  let title = ''
  let bells = 0
  let row = 0

  function csi(token: string): boolean {
    const [, mark, numbers = '', final = ''] = /^\[([?]?)([\d;]*)([A-Za-z])$/.exec(token.slice(1)) ?? []
    if (mark === '?' && (final === 'h' || final === 'l')) {
      const mode = Number(numbers)
      if (final === 'h') modes.add(mode)
      else modes.delete(mode)
      return [7, 25, 1049, 2004, 2026].includes(mode)
    }
    if (final === 'm') return /^[\d;]*$/.test(numbers)
    if (final === 't') return numbers === '22;0' || numbers === '23;0'
    if (final === 'H') row = Number(numbers.split(';')[0] ?? 1) - 1
    else if (final === 'K' && numbers === '2') lines[row] = ''
    else if (final === 'J') lines.splice(numbers === '2' ? 0 : row)
    else return false
    return true
  }

  function take(token: string): void {
    if (token === '\u0007') bells++
    else if (token.startsWith(`${ESC}]2;`)) title = token.slice(4, -1)
    else if (token.startsWith(`${ESC}[`)) {
      if (!csi(token)) foreign.push(token)
    } else if (/^[\p{Cc}\p{Cf}]/u.test(token) && !/^[\r\n]$/.test(token)) foreign.push(token)
    else if (token === '\n') row++
    else if (token !== '\r') lines[row] = (lines[row] ?? '') + token
  }

  return {
    modes,
    foreign,
    title: () => title,
    bells: () => bells,
    raw: () => raw,
    text: () => Array.from(lines, (line) => (line ?? '').trimEnd()).join('\n'),
    write(text) {
      raw += text
      const tokens = (rest + text).match(TOKEN) ?? []
      rest = ''
      for (const [index, token] of tokens.entries()) {
        const cut = index === tokens.length - 1 && token.startsWith(ESC) && !/[@-~\p{Cc}]$/u.test(token.slice(2))
        if (cut) rest = token
        else take(token)
      }
    },
  }
}
