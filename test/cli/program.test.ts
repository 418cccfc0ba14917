import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Io } from '../../src/cli/io.js'
import { createOutput } from '../../src/cli/output.js'
import { buildProgram, runProgram } from '../../src/cli/program.js'

/** Control characters but line ends, and the one that reverses text. */
const STEERING = /(?!\n)[\p{Cc}\u202e]/u

let home: string

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'kiki-cli-'))
})

afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

async function run(argv: string[], columns?: number) {
  const said = { out: '', err: '' }
  const code = await runProgram(argv, recorder(said, columns))
  return { code, ...said }
}

function recorder(said: { out: string; err: string }, columns?: number): Io {
  return {
    out: async (text) => {
      said.out += text
    },
    err: async (text) => {
      said.err += text
    },
    columns,
    ask: undefined,
  }
}

describe('the form of every command', () => {
  const silent = createOutput(recorder({ out: '', err: '' }), { json: false })
  const all = (command: Command): Command[] => [command, ...command.commands.flatMap(all)]
  const names = (command: Command): string[] => (command.parent ? [...names(command.parent), command.name()] : [])

  it.each(all(buildProgram({ output: silent, ask: undefined }, [])).map(names))(
    'CL-18 --help has an example: kiki %s %s',
    async (...argv) => {
      const { code, out, err } = await run([...argv, '--help'])
      expect(code).toBe(0)
      expect(err).toBe('')
      expect(out).toMatch(/\nExample:\n {2}kiki /)
      expect(out).toContain('--home <dir>')
      expect(out).toContain('--json')
    },
  )

  it('CL-18 --version prints the version of the package', async () => {
    const { version } = await import('../../package.json', { with: { type: 'json' } }).then((module) => module.default)
    expect(await run(['--version'])).toEqual({ code: 0, out: `${version}\n`, err: '' })
  })

  it.each(
    [
      [],
      ['nosuch'],
      ['config'],
      ['config', 'show', '--nosuch'],
      ['config', 'show', 'more'],
      ['config', 'show', '--home='],
      ['config', 'show', '--home'],
    ].map((argv) => ({ argv })),
  )('wrong usage exits with 2 and says what to do: $argv', async ({ argv }) => {
    const human = await run(argv)
    expect([human.code, human.out]).toEqual([2, ''])
    expect(human.err).toMatch(/^error: .+\n(.*\n)*Run `kiki( config( show)?)? --help`/m)
    const machine = await run([...argv, '--json'])
    expect(machine.code).toBe(2)
    expect(JSON.parse(machine.out).error.code).toBe('invalid_arguments')
  })
})

describe('wrong usage', () => {
  it.each([
    [['nosuch'], 'kiki --help'],
    [['sessions', 'create'], 'kiki sessions create --help'],
    [['sessions', 'nosuch'], 'kiki sessions --help'],
    [['connections', 'add', '--name', 'x', '--rate', 'y'], 'kiki connections add --help'],
    [['connect', 'cursor'], 'kiki connect --help'],
  ])('CL-18 names the help of the command itself: %j', async (argv, help) => {
    const { code, err } = await run(argv)
    expect([code, err]).toEqual([2, expect.stringContaining(`\`${help}\``)])
  })

  it('CL-13 an unknown client is said before a missing --client', async () => {
    expect((await run(['connect', 'notepad'])).err).toContain("'notepad'")
    expect((await run(['connect', 'cursor'])).err).toContain('--client <id>')
  })
})

describe('a home that cannot be one', () => {
  it.each([[['status']], [['stop']], [['start']], [['start', '--background']]])(
    'CL-01 CL-02 kiki %j says that a file stands there',
    async (argv) => {
      const file = join(home, 'file')
      await writeFile(file, '')
      for (const dir of [file, join(file, 'below'), join(file, 'x'.repeat(120))]) {
        const { code, out, err } = await run([...argv, '--home', dir])
        expect([code, out]).toEqual([1, ''])
        expect(err).toContain(`The home ${dir} cannot be a folder`)
        expect(err).toContain('choose another --home')
      }
    },
  )

  it.runIf(process.platform === 'linux').each([[['start']], [['start', '--background']]])(
    'CL-01 kiki %j says that a folder cannot be made, and does not take it for a fault of its own',
    async (argv) => {
      const { code, err } = await run([...argv, '--home', '/proc/kiki-no-such'])
      expect(code).toBe(1)
      expect(err).toContain('/proc/kiki-no-such cannot be made')
      expect(err).toContain('Choose another --home')
      expect(err).not.toContain('fault of Kiki')
    },
  )
})

describe('kiki config show', () => {
  it('CF-03 tells where each value is from', async () => {
    await writeFile(join(home, 'config.toml'), '[log]\nlevel = "debug"\n')
    const { code, out, err } = await run(['config', 'show', '--origin', '--home', home], 200)
    expect([code, err]).toEqual([0, ''])
    expect(out).toMatch(new RegExp(`log\\.level +│ "debug" +│ ${home}/config.toml:2:1`))
    expect(out).toMatch(/mcp\.tool_timeout_ms +│ 60000 +│ default/)
  })

  it('CF-03 prints one JSON value with --json, warnings included', async () => {
    await writeFile(join(home, 'config.toml'), '[log]\nlevel = "debug"\nlvel = 1\n')
    const { code, out, err } = await run(['--json', '--home', home, 'config', 'show', '--origin'])
    const value = JSON.parse(out)
    expect(code).toBe(0)
    expect(err).toMatch(/^warning: .*config\.toml:3:1: unknown key log\.lvel/)
    expect(value.config.log.level).toBe('debug')
    expect(value.origins['log.level']).toEqual({ from: 'file', file: join(home, 'config.toml'), line: 2, column: 1 })
    expect(value.warnings).toMatchObject([{ nearest: 'log.level' }])
  })

  it('CF-02 fails with every fault on stderr, and as JSON', async () => {
    await writeFile(join(home, 'config.toml'), '[owner]\nport = "x"\n[sandbox]\nengin = "auto"\n')
    const human = await run(['config', 'show', '--home', home])
    expect([human.code, human.out]).toEqual([1, ''])
    expect(human.err).toContain(
      `error: ${home}/config.toml:2:8: owner.port must be a whole number from 0 to 65535, not "x"`,
    )
    expect(human.err).toContain(`${home}/config.toml:4:1: unknown key sandbox.engin (did you mean sandbox.engine?)`)
    const machine = await run(['config', 'show', '--json', '--home', home])
    expect(machine.code).toBe(1)
    expect(JSON.parse(machine.out).error.data.problems).toHaveLength(2)
  })

  it('sends nothing to the terminal that could steer it', async () => {
    const odd = join(home, 'a\u001b]0;x\u0007\u202eb')
    await mkdir(odd)
    await writeFile(join(odd, 'config.toml'), '[sandbox]\ncaches = ["x\\u001B[31m\\u202Ey"]\n')
    for (const more of [['--origin'], ['--json']]) {
      const { code, out } = await run(['config', 'show', '--home', odd, ...more], 100)
      expect(code).toBe(0)
      expect(out).not.toMatch(STEERING)
      for (const line of out.split('\n').filter((text) => text.startsWith('│')))
        expect(line.length).toBeLessThanOrEqual(100)
    }
    await writeFile(join(odd, 'config.toml'), 'x = "\\q')
    const { code, err } = await run(['config', 'show', '--home', odd])
    expect(code).toBe(1)
    expect(err).not.toMatch(STEERING)
  })
})
