import { KikiError } from '../lib/errors.js'

export function cancelled(): KikiError {
  return new KikiError('cancelled', 'Cancelled; its processes were ended.', { hint: 'Call again to repeat it.' })
}

export function stopping(): KikiError {
  return new KikiError('cancelled', 'Kiki is stopping, so its processes were ended.', {
    hint: 'Call again once Kiki runs.',
  })
}

export function launcherLost(detail: string): KikiError {
  return new KikiError('internal_error', `The launcher of child processes ended unexpectedly (${detail}).`, {
    hint: 'Call again: a new launcher is started by itself.',
  })
}

export function notSeenToEnd(pid: number): KikiError {
  return new KikiError('outcome_unknown', `Process group ${pid} was killed but was not seen to end within 2 s.`, {
    hint: 'It may be stuck in the system; look at it with ps before repeating the call.',
  })
}

/** @param code of the launcher's `failed` message. */
export function cannotStart(code: string, message: string, program: string, cwd: string): KikiError {
  switch (code) {
    case 'ECANCELED':
      return cancelled()
    case 'ENOENT':
      return new KikiError('not_found', `There is no program "${program}" to run.`, {
        hint: 'Check its name, and that PATH names its folder.',
      })
    case 'ENOCWD':
      return new KikiError('not_found', `The folder "${cwd}" to run in is not there.`, { hint: 'Check the path.' })
    case 'EACCES':
      return new KikiError('permission_denied', `The system does not let "${program}" be run in "${cwd}".`, {
        hint: 'Check that the file is executable and that the folder may be entered.',
      })
    case 'E2BIG':
      return new KikiError('too_large', 'The arguments and environment are larger than the system allows.', {
        hint: 'Pass long values through a file.',
      })
    default:
      return new KikiError('internal_error', `"${program}" could not be started: ${message}.`, {
        hint: 'The system may be out of processes, memory or file descriptors; try again later.',
        data: { code },
      })
  }
}
