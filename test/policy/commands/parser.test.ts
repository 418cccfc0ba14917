// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is shell text
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { COMMAND_CLASSES, isReadOnly, openShellParser, type ShellParser } from '../../../src/policy/commands/parser.js'
import { SPELLINGS } from './spellings.js'

let parser: ShellParser
beforeAll(async () => {
  parser = await openShellParser()
})

const spelling = fc.constantFrom(...SPELLINGS)
// A here-document or an open quote swallows what is joined to it, as in bash.
const joinable = SPELLINGS.filter(({ script, opaque }) => !opaque && !/<<|#/.test(script) && !script.endsWith('&'))

describe('what a parsed script says', () => {
  it('PO-04 it names each simple command, its words without quotes, and the wrappers that it was found in', () => {
    const { commands } = parser.parse(`cd "a b" && sudo -u root env X=1 sh -c 'git "status" | xargs rm' > f`)
    expect(commands.map(({ program, via, words }) => [via.join(' '), program, words.map(({ text }) => text)])).toEqual([
      ['', 'cd', ['cd', 'a b']],
      ['', 'sudo', ['sudo', '-u', 'root', 'env', 'X=1', 'sh', '-c', 'git "status" | xargs rm']],
      ['sudo', 'env', ['env', 'X=1', 'sh', '-c', 'git "status" | xargs rm']],
      ['sudo env', 'sh', ['sh', '-c', 'git "status" | xargs rm']],
      ['sudo env sh', 'git', ['git', 'status']],
      ['sudo env sh', 'xargs', ['xargs', 'rm']],
      ['sudo env sh xargs', 'rm', ['rm', '…']],
    ])
    expect(commands[1]?.redirections.map(({ operator, target }) => [operator, target?.text])).toEqual([['>', 'f']])
    expect(commands.map(({ dynamic }) => dynamic)).toEqual([false, false, false, false, false, false, true])
  })

  it('PO-04 words behind a redirection are words, and its target is one word', () => {
    const [command] = parser.parse('FOO=1 cat > f -n "x y" 2>&1 z').commands
    expect(command?.words.map(({ text }) => text)).toEqual(['cat', '-n', 'x y', 'z'])
    expect(command?.redirections.map(({ text }) => text)).toEqual(['> f', '2>&1'])
    expect(command?.assignments.map(({ name, text }) => [name, text])).toEqual([['FOO', 'FOO=1']])
  })

  it('CC-01 an empty script, or one of comments, does nothing', () => {
    for (const script of ['', ' \n\t', '# rm -rf /'])
      expect(parser.parse(script)).toMatchObject({ commands: [], classes: ['read_only'] })
  })

  it('PO-04 what is too long, too deep or too much is opaque, and quickly so', () => {
    const scripts = [
      `echo ${'x'.repeat(40_000)}`,
      '$('.repeat(10_000),
      `${'('.repeat(5_000)}ls${')'.repeat(5_000)}`,
      `${'('.repeat(300)}ls${')'.repeat(300)}`,
      `${'echo $('.repeat(250)}id${')'.repeat(250)}`,
      `${'sudo '.repeat(100)}id`,
      `${'eval '.repeat(100)}id`,
      '{'.repeat(30_000),
      '`'.repeat(9_999),
      `"${'${x:-'.repeat(3_000)}`,
    ]
    for (const script of scripts) {
      const started = performance.now()
      expect(parser.parse(script).opaque, script.slice(0, 20)).toBeDefined()
      expect(performance.now() - started).toBeLessThan(5_000)
    }
    expect(isReadOnly(parser.parse(Array.from({ length: 300 }, () => 'ls').join('; ')))).toBe(true)
  })

  it('PO-04 an emoji is no disguise, a character that is not seen is one', () => {
    for (const script of ['echo "✔️ done"', 'echo 👩‍💻', 'echo Grüße 你好'])
      expect(parser.parse(script).opaque, script).toBeUndefined()
    for (const character of [
      '\u200b',
      '\u00a0',
      '\u202e',
      '\ufeff',
      '\u00ad',
      '\u2066',
      '\ud800',
      '\u3164',
      '\x1b',
      '\x7f',
      '\u{e0041}',
    ])
      expect(parser.parse(`echo a${character}b`).opaque?.reason, JSON.stringify(character)).toContain('invisible')
  })
})

describe('properties', () => {
  it('CC-01 any text is read without an error, and is read-only only if each of its commands is', () => {
    const text = fc.oneof(
      fc.string({ maxLength: 60 }),
      fc.string({ unit: 'binary', maxLength: 30 }),
      fc
        .array(
          fc.oneof(
            spelling.map(({ script }) => script),
            fc.constantFrom(...'\'"`$(){}[]<>|&;#\\\n !*?~='),
          ),
          { maxLength: 6 },
        )
        .map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(text, (script) => {
        const parsed = parser.parse(script)
        expect(parsed.classes.length).toBeGreaterThan(0)
        expect(parsed.classes).toEqual(COMMAND_CLASSES.filter((one) => parsed.classes.includes(one)))
        if (!isReadOnly(parsed)) return
        expect(parsed.opaque).toBeUndefined()
        for (const command of parsed.commands) expect(command.classes).toEqual(['read_only'])
        for (const redirection of parsed.redirections) expect(redirection.classes).toEqual([])
      }),
      { numRuns: 1_500 },
    )
  }, 60_000)

  it("CC-01 CC-04 quotes that bash ignores in a program's name never make its classes smaller", () => {
    const plain = joinable.filter(
      ({ script }) =>
        /^[a-z]{2,}(?: |$)/.test(script) && !/^(?:if|for|while|case|time|coproc|export|declare)\b/.test(script),
    )
    const quoting = fc.constantFrom<(name: string, at: number) => string>(
      (name, at) => `${name.slice(0, at)}""${name.slice(at)}`,
      (name, at) => `${name.slice(0, at)}''${name.slice(at)}`,
      (name, at) => `${name.slice(0, at)}\\${name.slice(at)}`,
      (name, at) => `${name.slice(0, at)}'${name.slice(at)}'`,
      (name, at) => `"${name.slice(0, at)}"${name.slice(at)}`,
      (name, at) => `${name.slice(0, at)}$'${name.slice(at)}'`,
      (name, at) => `${name.slice(0, at)}$'\\x${name.charCodeAt(at).toString(16)}'${name.slice(at + 1)}`,
    )
    expect(plain.length).toBeGreaterThan(100)
    fc.assert(
      fc.property(fc.constantFrom(...plain), quoting, fc.nat(), ({ script, classes }, quote, place) => {
        const name = /^[a-z]+/.exec(script)?.[0] ?? ''
        const quoted = quote(name, place % name.length) + script.slice(name.length)
        expect(parser.parse(quoted).classes, quoted).toEqual(expect.arrayContaining([...classes]))
      }),
      { numRuns: 500 },
    )
  }, 60_000)

  it('CC-01 CC-04 two scripts joined are at least what both are', () => {
    const one = fc.constantFrom(...joinable)
    const joint = fc.constantFrom(' ; ', ' && ', '\n', ' | ', ' || ', ' & ')
    fc.assert(
      fc.property(one, joint, one, (first, between, second) => {
        const script = `${first.script}${between}${second.script}`
        const { classes } = parser.parse(script)
        // That a part only reads need not be seen where the whole cannot be read.
        const both = [...first.classes, ...second.classes].filter((one) => one !== 'read_only')
        expect(classes, script).toEqual(expect.arrayContaining(both))
        if (both.length > 0) expect(classes, script).not.toEqual(['read_only'])
      }),
      { numRuns: 700 },
    )
  }, 60_000)

  it('FC-P06 a substitution around a script hides nothing of it', () => {
    const around = fc.constantFrom<(script: string) => string>(
      (script) => `echo $(${script})`,
      (script) => `echo "$(${script})"`,
      (script) => `cat <(${script})`,
      (script) => `(${script})`,
      (script) => `{ ${script}\n}`,
      (script) => `if ${script}\nthen ls\nfi`,
      (script) => `x=$(${script})`,
    )
    fc.assert(
      fc.property(fc.constantFrom(...joinable), around, ({ script, classes }, wrap) => {
        const parsed = parser.parse(wrap(script))
        const serious = classes.filter((one) => one !== 'read_only')
        expect(parsed.classes, wrap(script)).toEqual(expect.arrayContaining(serious))
      }),
      { numRuns: 500 },
    )
  }, 60_000)
})
