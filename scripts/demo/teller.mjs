import { styleText } from 'node:util'

/** Prints a story in numbered steps. */
export function createTeller({ out = process.stdout, env = process.env } = {}) {
  let steps = 0
  const say = (text) => console.log(text)
  const bold = (text) => (out.isTTY && !env.NO_COLOR ? styleText('bold', text) : text)
  return {
    say,
    step(title, how) {
      steps += 1
      say(`\n${bold(`${steps}. ${title}`)}  (${how})`)
    },
    tell: (text) => say(`   ${text}`),
    quote(text) {
      for (const line of text.trimEnd().split('\n')) say(`   | ${line}`)
    },
    /** Says what went wrong, and makes the exit code tell it. */
    fail(error) {
      process.exitCode = 1
      console.error(`\nThe demo failed at step ${steps}. ${error instanceof Error ? error.message : error}`)
    },
  }
}
