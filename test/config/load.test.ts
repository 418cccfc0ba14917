import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ConfigSources, loadConfig } from '../../src/config/load.js'
import { ConfigError, type ConfigProblem } from '../../src/config/problems.js'

/** Built by the tests' global setup. */
const DIST_LOAD = new URL('../../dist/config/load.js', import.meta.url).href

let home: string
let file: string

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'kiki-config-'))
  file = join(home, 'config.toml')
})

afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

async function load(text?: string | Uint8Array, more: Partial<ConfigSources> = {}) {
  if (text !== undefined) await writeFile(file, text)
  return loadConfig({ file, env: {}, ...more })
}

/** The faults of a text, and proof that the file is as it was. */
async function faultsOf(
  text: string | Uint8Array,
  more: Partial<ConfigSources> = {},
): Promise<readonly ConfigProblem[]> {
  const error = await load(text, more).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  expect(error).toBeInstanceOf(ConfigError)
  expect(Buffer.from(text).equals(await readFile(file))).toBe(true)
  return (error as ConfigError).problems
}

describe('what is read', () => {
  it('CF-03 gives the defaults where there is no file', async () => {
    const { config, origins, warnings } = await load()
    expect(config.mcp).toEqual({ startup_timeout_ms: 30_000, tool_timeout_ms: 60_000 })
    expect(config.commands.classes).toEqual({ destructive: 'deny', privilege_escalation: 'deny' })
    expect(new Set(Object.values(origins).map((origin) => origin.from))).toEqual(new Set(['default']))
    expect(warnings).toEqual([])
  })

  it('CF-03 takes flag over environment over file over default, and tells which', async () => {
    const text = '[owner]\nport = 1\n[log]\nlevel = "warn"\n[mcp]\ntool_timeout_ms = 5\n[profiles.p]\nmode = "yolo"\n'
    const env = { KIKI_OWNER_PORT: '2', KIKI_LOG_LEVEL: 'debug' }
    const flags = [{ flag: '--port', key: 'owner.port', value: '3' }]
    const { config, origins } = await load(text, { env, flags })
    expect(config.owner.port).toBe(3)
    expect(config.log.level).toBe('debug')
    expect(config.mcp.tool_timeout_ms).toBe(5)
    expect(config.profiles.p).toEqual({ mode: 'full' })
    expect(origins).toMatchObject({
      'owner.port': { from: 'flag', flag: '--port' },
      'log.level': { from: 'environment', variable: 'KIKI_LOG_LEVEL' },
      'mcp.tool_timeout_ms': { from: 'file', file, line: 6, column: 1 },
      'profiles.p.mode': { from: 'file', line: 8 },
      'mcp.startup_timeout_ms': { from: 'default' },
    })
  })

  it('KI-024 GR-01 CF-03 reads the variables that are an interface', async () => {
    const { config } = await load(undefined, {
      env: {
        KIKI_MCP_STARTUP_TIMEOUT_MS: '1',
        KIKI_MCP_TOOL_TIMEOUT_MS: '2147483647',
        KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS: '0',
        KIKI_HOME: '/elsewhere',
      },
    })
    expect(config.mcp).toEqual({ startup_timeout_ms: 1, tool_timeout_ms: 2_147_483_647 })
    expect(config.experimental.external_clients).toBe(false)
  })

  it.each(['', '0x10', '1e3', ' 5', '-1', '0', '2147483648', 'abc', '99999999999999999999'])(
    'CF-03 refuses %j as a time in a variable, rather than guess',
    async (value) => {
      const faults = await faultsOf('', { env: { KIKI_MCP_TOOL_TIMEOUT_MS: value } })
      expect(faults).toMatchObject([
        { source: 'environment variable KIKI_MCP_TOOL_TIMEOUT_MS', key: 'mcp.tool_timeout_ms' },
      ])
    },
  )

  it('CF-02 takes a misspelt variable for what it is: an error where it bears on rights', async () => {
    const faults = await faultsOf('', { env: { KIKI_EXPERIMENTAL_EXTERNAL_CLIENT: '0' } })
    expect(faults).toMatchObject([{ severity: 'error', hint: 'did you mean KIKI_EXPERIMENTAL_EXTERNAL_CLIENTS?' }])
    const { warnings } = await load('', { env: { KIKI_LOGLEVEL: 'debug', KIKI_OPERATION_ID: 'op_1' } })
    expect(warnings).toMatchObject([{ severity: 'warning', nearest: 'log.level' }])
  })

  it('CF-03 accepts a byte order mark and CRLF (FC-C07)', async () => {
    const { config, origins } = await load('\ufeff[mcp]\r\nstartup_timeout_ms = 1000\r\n')
    expect(config.mcp.startup_timeout_ms).toBe(1000)
    expect(origins['mcp.startup_timeout_ms']).toEqual({ from: 'file', file, line: 2, column: 1 })
  })

  it('PO-02 PO-05 keeps rules in order and can tell where each stands', async () => {
    const rules = '[[permission.rules]]\ndecision = "deny"\npattern = "Read(~/.ssh/**)"\n'
    const text = `${rules}\n[[permission.rules]]\npattern = "Bash"\ndecision = "allow"\nconnection = "client_1"\nworkspace = "~/app"\n`
    const { config, locate } = await load(text)
    expect(config.permission.rules).toEqual([
      { decision: 'deny', pattern: 'Read(~/.ssh/**)' },
      { decision: 'allow', pattern: 'Bash', connection: 'client_1', workspace: '~/app' },
    ])
    expect(locate(['permission', 'rules', 1, 'pattern'])).toEqual({ line: 6, column: 1 })
    expect(locate(['permission', 'rules', 1])).toEqual({ line: 5, column: 3 })
  })
})

describe('what is refused', () => {
  it('CF-02 names file, line, column and key of a wrong value, and drops no deny rule for it (FC-C03)', async () => {
    const text = '[[permission.rules]]\ndecision = "deny"\npattern = "Bash"\n\n[mcp]\ntool_timeout_ms = "abc"\n'
    expect(await faultsOf(text)).toEqual([
      {
        severity: 'error',
        source: file,
        line: 6,
        column: 19,
        key: 'mcp.tool_timeout_ms',
        message: 'mcp.tool_timeout_ms must be a whole number from 1 to 2147483647, not "abc"',
      },
    ])
  })

  it.each([
    ['[permission]\nrule = []', 'permission.rule', 'permission.rules', '2:1'],
    ['[commands.classes]\ndestructve = "ask"', 'commands.classes.destructve', 'commands.classes.destructive', '2:1'],
    [
      '[[permission.rules]]\ndecision="allow"\npattern="x"\nconection="c"',
      'permission.rules[0].conection',
      'permission.rules[0].connection',
      '4:1',
    ],
    ['sandbox.cachs = []', 'sandbox.cachs', 'sandbox.caches', '1:1'],
    ['[[permision.rules]]\ndecision="deny"\npattern="x"', 'permision', 'permission', '1:3'],
    ['[[rules]]\ndecision="deny"\npattern="x"', 'rules', 'permission.rules', '1:3'],
    ['[comands]\nnon_interactive = "deny"', 'comands', 'commands', '1:2'],
    ['[experimental]\nexternalClients = false', 'experimental.externalClients', 'experimental.external_clients', '2:1'],
    ['[profiles.p]\nmoed = "read-only"', 'profiles.p.moed', 'profiles.p.mode', '2:1'],
  ])('CF-02 refuses an unknown key that bears on rights (FC-C06): %j', async (text, key, nearest, place) => {
    const faults = await faultsOf(text)
    expect(faults.map((fault) => [fault.severity, fault.key, fault.nearest, `${fault.line}:${fault.column}`])).toEqual([
      ['error', key, nearest, place],
    ])
  })

  it('CF-02 lists the valid keys where none is near', async () => {
    const [fault] = await faultsOf('[sandbox]\nzzz = 1')
    expect(fault?.hint).toBe('valid keys here: engine, caches, docker_image, memory_mb, cpus, processes')
  })

  it.each([
    ['[mcp]\ntimeuot = 1\ntool_timeout_ms = 7', 'mcp.timeuot', undefined],
    ['[mcp]\ntoolTimeoutMs = 1\ntool_timeout_ms = 7', 'mcp.toolTimeoutMs', 'mcp.tool_timeout_ms'],
    ['[mcp]\ntool_timeout_ms = 7\n[telemetry]\nunknown = 1', 'telemetry', undefined],
  ])('CF-02 warns of a harmless unknown key and uses the rest: %j', async (text, key, nearest) => {
    const { config, warnings } = await load(text)
    expect(config.mcp.tool_timeout_ms).toBe(7)
    expect(warnings.map((one) => [one.severity, one.key, one.nearest])).toEqual([['warning', key, nearest]])
  })

  it.each([
    ['permission = 3', 'permission', 'must be a table'],
    ['[permission.rules]\ndecision = "deny"', 'permission.rules', '[[permission.rules]]'],
    ['[[permission.rules]]\ndecision = "deny"', 'permission.rules[0].pattern', 'is missing'],
    ['[[permission.rules]]\ndecision = "alow"\npattern = "x"', 'permission.rules[0].decision', 'did you mean "allow"?'],
    ['[approvals]\nexpiry = "5 minutes"', 'approvals.expiry', '"30m"'],
    ['[owner]\nport = 65536', 'owner.port', 'from 0 to 65535'],
    ['[owner]\nport = nan', 'owner.port', 'from 0 to 65535'],
    ['[owner]\nport = 1979-05-27', 'owner.port', 'from 0 to 65535'],
    ['[retention]\ndays = 0', 'retention.days', 'from 1'],
    ['[calls]\nwait_ms = 45001', 'calls.wait_ms', 'from 0 to 45000'],
    ['[experimental]\nexternal_clients = 0', 'experimental.external_clients', 'true or false'],
    ['[profiles."a b"]\nmode = "full"', 'profiles."a b"', 'is no profile name'],
    ['[profiles.__proto__]\nmode = "full"', 'profiles.__proto__', 'unsafe'],
    ['[mcp]\n[mcp]\n', 'mcp', 'first on line 1'],
    ['[mcp]\ntool_timeout_ms 5', 'mcp.tool_timeout_ms', 'not valid TOML'],
  ])('CF-02 says what is wrong with %j', async (text, key, words) => {
    const faults = await faultsOf(text)
    expect(faults.map((fault) => fault.key)).toEqual([key])
    expect(`${faults[0]?.message} ${faults[0]?.hint}`).toContain(words)
    expect(faults[0]?.line).toBeGreaterThan(0)
  })

  it('CF-02 reports every fault at once, in the order of the file', async () => {
    const faults = await faultsOf('[owner]\nport = -1\n[log]\nlevel = "inof"\nlvel = 1\n[sandbox]\nx = 1\n')
    expect(faults.map((fault) => [fault.line, fault.severity])).toEqual([
      [2, 'error'],
      [4, 'error'],
      [5, 'warning'],
      [7, 'error'],
    ])
    expect(faults[1]?.hint).toBe('did you mean "info"?')
  })

  it.each([
    ['caches = ["C:\\Users\\x"]', 14, `'C:\\Users\\x'`],
    ['caches = ["C:\\temp\\new"]', 14, `'C:\\temp\\new'`],
    ['caches = ["C:\\"]', 14, 'single quotes'],
    ['caches = ["C:\\\\Users\\\\a\\new"]', 24, `'C:\\Users\\a\\new'`],
    ['caches = ["\\\\\\\\server\\new"]', 22, `'\\\\server\\new'`],
    ['caches = ["D:\\q\\x"]', 14, `'D:\\q\\x'`],
    ['engine = "(C:\\temp)"', 14, "'(C:\\temp)'"],
  ])(
    'CF-02 points at the backslash of a Windows path and proposes single quotes (FC-C02): %s',
    async (line, column, hint) => {
      const faults = await faultsOf(`[sandbox]\n${line}\n`)
      expect(faults).toMatchObject([{ line: 2, column, source: file }])
      expect(faults[0]?.hint).toContain(hint)
    },
  )

  it('CF-02 takes doubled backslashes and single quotes as they are', async () => {
    const text = `[sandbox]\ncaches = ["C:\\\\Users\\\\x", 'D:\\new', "\\\\\\\\server\\\\new"]\n[profiles.p]\ninstructions = "Plan B:\\nwait"\n`
    const { config } = await load(text)
    expect(config.sandbox.caches).toEqual(['C:\\Users\\x', 'D:\\new', '\\\\server\\new'])
    expect(config.profiles.p?.instructions).toBe('Plan B:\nwait')
  })
})

describe('files that cannot be read', () => {
  it('CF-02 refuses text that is not UTF-8, with its place', async () => {
    expect(await faultsOf(Buffer.from('# é\n# caf\xe9\n', 'latin1'))).toMatchObject([{ line: 1, column: 3 }])
    expect(await faultsOf(Buffer.from('a = 1\n# \xff', 'latin1'))).toMatchObject([{ line: 2, column: 3 }])
    expect(await faultsOf(Buffer.from('\ufeff[mcp]\n', 'utf16le'))).toMatchObject([{ hint: 'save it as UTF-8' }])
  })

  it('CF-02 never takes the defaults for a file that is there', async () => {
    await symlink(join(home, 'gone.toml'), file)
    await expect(load()).rejects.toThrow('a link to a file that does not exist')
    await expect(load(undefined, { file: home })).rejects.toThrow('not a regular file')
    await rm(file)
    await expect(load(new Uint8Array(1_048_577).fill(35))).rejects.toThrow('larger than')
  })

  it('CF-02 says that a file cannot be read', async () => {
    await writeFile(file, '')
    await chmod(file, 0)
    const script = `
      const { loadConfig } = await import(process.argv[1])
      await loadConfig({ file: process.argv[2], env: {} }).catch((error) => console.log(error.message))`
    const command = [process.execPath, '--input-type=module', '-e', script, DIST_LOAD, file]
    // Root could read it all the same, so the program gives up root's capabilities first.
    const asRoot = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
    const [program = '', ...args] = [...asRoot, ...command]
    expect(execFileSync(program, args, { encoding: 'utf8' })).toContain('EACCES')
  })
})
