import { type CommandClass, unionOf } from './classes.js'
import { classesOfWriting, secretsIn } from './paths.js'
import type { Redirection, Word } from './types.js'

/** Reads one redirection: what a write changes, what a read discloses. `target` is undefined for `>&-`. */
export function redirectionOf(text: string, operator: string, target: Word | undefined): Redirection {
  return { text, operator, target, classes: classesOfRedirection(operator, target) }
}

function classesOfRedirection(operator: string, target: Word | undefined): CommandClass[] {
  if (target === undefined || operator === '<<<' || operator.startsWith('<<')) return []
  if (/^[<>]&-?$/.test(operator) && /^\d+-?$|^-$/.test(target.text)) return []
  if (!target.known && target.text.startsWith('>(')) return []
  const network: CommandClass[] = /^\/dev\/(?:tcp|udp)\//.test(target.value) ? ['network_egress'] : []
  const hidden: CommandClass[] = target.known || target.text.startsWith('<(') ? [] : ['unknown']
  if (operator === '<' || operator === '<&') return unionOf(network, secretsIn(target), hidden)
  return unionOf(classesOfWriting(target), hidden)
}
