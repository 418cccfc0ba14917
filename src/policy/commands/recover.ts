import { type CommandClass, unionOf } from './classes.js'
import { programOf } from './programs.js'
import { classesByRule } from './rules.js'
import { ruleOf } from './tables/index.js'
import { plainWord } from './words.js'
import { wrapperOf } from './wrappers.js'

/**
 * Classes of whatever looks like a command in a script that cannot be trusted to be read right: so that what is
 * denied stays denied behind a construct that Kiki does not follow. Never makes a script look better.
 */
export function recoveredClasses(script: string): CommandClass[] {
  const found: CommandClass[][] = []
  for (const piece of pieces(script)) {
    const words = piece.split(/\s+/).filter(Boolean)
    for (let at = 0; at < Math.min(words.length, 24); at++) {
      const name = programOf(plainWord(words[at] ?? ''))?.name.toLowerCase() ?? ''
      const rule = ruleOf(name)
      found.push([...(wrapperOf(name)?.classes ?? [])])
      if (rule !== undefined && SEVERE.test(name))
        found.push(classesByRule(rule, name, words.slice(at + 1).map(plainWord)))
      else if (rule !== undefined && at === 0) found.push([...rule.classes])
    }
  }
  return unionOf(...found).filter((one) => one !== 'read_only' && one !== 'unknown')
}

// Whose arguments decide whether anything can be undone.
const SEVERE = /^(?:rm|git|dd|mkfs.*|shred|chmod|find|mv|docker|kubectl)$/

function pieces(script: string): string[] {
  return script
    .replaceAll('\\\n', '')
    .replace(/['"\\]/g, '')
    .split(/[;&|\n(){}`<>]+/)
}

/** The script's text with everything taken out that bash ignores, for comparing with rules that deny. */
export function bareText(script: string): string {
  return script
    .replaceAll('\\\n', '')
    .replace(/\$\{?IFS\}?/g, ' ')
    .replace(/['"\\]/g, '')
    .replace(/\s+/g, ' ')
}
