import { rgPath } from '@vscode/ripgrep'
import { KikiError } from '../../lib/errors.js'
import type { ToolContext } from '../tool.js'
import type { Scope } from './scope.js'

export interface Finished {
  /** True where the reader had seen enough. */
  stopped: boolean
  /** Files and folders that the system did not let be read. */
  unreadable: number
}

/**
 * Runs ripgrep in the scope's held folder. It never reads the user's own configuration, and gets an empty environment but
 * for a UTF-8 locale.
 * @throws KikiError `invalid_arguments` for a pattern or type that it refuses, `cancelled`.
 */
export async function runRipgrep(
  context: Pick<ToolContext, 'processes' | 'signal'>,
  scope: Scope,
  args: readonly string[],
  onStdout: (chunk: Buffer) => boolean | undefined,
): Promise<Finished> {
  const result = await context.processes.run({
    argv: [rgPath, '--no-config', '--no-ignore-messages', '--color', 'never', ...args],
    cwd: pinned(scope),
    env: { LANG: 'C.UTF-8' },
    signal: context.signal,
    onStdout,
  })
  if (result.stopped) return { stopped: true, unreadable: 0 }
  // 0: found, 1: found nothing, 2: something went wrong, maybe with single files only.
  if (result.exitCode === 0 || result.exitCode === 1) return { stopped: false, unreadable: 0 }
  // What stands after the last line end was cut off.
  const lines = result.stderr.split('\n').slice(0, -1)
  const unreadable = lines.filter((line) => /^rg: .*\(os error \d+\)$/s.test(line))
  if (result.exitCode === 2 && unreadable.length === lines.length && lines.length > 0) {
    return { stopped: false, unreadable: unreadable.length }
  }
  throw explain(result.stderr, result.signal)
}

/** The folder that is held, wherever its path leads by now; other systems have only the path. */
function pinned(scope: Scope): string {
  return process.platform === 'linux' ? `/proc/${process.pid}/fd/${scope.folder.fd}` : scope.folder.path
}

function explain(stderr: string, signal: NodeJS.Signals | null): KikiError {
  const message = stderr.trim().slice(0, 2_000)
  const cause = /error: ([^\n]+)/.exec(message)?.[1]
  if (/look-around|backreferences/.test(message)) {
    return new KikiError('invalid_arguments', `The pattern is not accepted: ${cause ?? message}.`, {
      hint: 'Search without look-around and backreferences, then narrow down by reading the hits.',
    })
  }
  if (message.includes('is not allowed in a regex')) {
    return new KikiError('invalid_arguments', 'The pattern holds a line break, but lines are searched one by one.', {
      hint: 'Set multiline: true to search across lines.',
    })
  }
  if (message.includes('impossible to match')) {
    return new KikiError('invalid_arguments', 'The pattern matches only a NUL byte, which no text file holds.', {
      hint: 'Leave \\0 and \\x00 out of the pattern; binary files are not searched.',
    })
  }
  if (message.includes('regex parse error')) {
    return new KikiError(
      'invalid_arguments',
      `The pattern is no valid regular expression: ${cause ?? message}.\n${message}`,
      {
        hint: 'Put a backslash before ( ) [ ] { } . * + ? | ^ $ that are meant literally.',
      },
    )
  }
  const type = /unrecognized file type: (.*)/.exec(message)?.[1]
  if (type !== undefined) {
    return new KikiError('invalid_arguments', `There is no file type "${type}".`, {
      hint: 'Use a type such as ts, js, py, rust, go, md, json, or glob: "*.ext" instead.',
    })
  }
  if (/size limit|too big/i.test(message)) {
    return new KikiError('invalid_arguments', 'The pattern is too large to compile.', {
      hint: 'Use smaller repetition counts.',
    })
  }
  return new KikiError('internal_error', `The search failed: ${message || (signal ?? 'ripgrep said nothing')}.`, {
    hint: 'Try a simpler pattern or a smaller folder.',
  })
}
