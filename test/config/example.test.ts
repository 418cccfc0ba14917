import { readFile } from 'node:fs/promises'
import { parse } from 'smol-toml'
import { describe, expect, it } from 'vitest'
import { durationMs } from '../../src/config/duration.js'
import { allLeaves, formatKey } from '../../src/config/keys.js'
import { readConfig } from '../../src/config/load.js'
import { COMMAND_CLASSES, configSchema } from '../../src/config/schema.js'
import { MODES } from '../../src/policy/modes.js'

const file = new URL('../../config.example.toml', import.meta.url).pathname
const read = (text: string) => readConfig({ file, text, env: {}, flags: [] })

describe('config.example.toml', async () => {
  const text = await readFile(file, 'utf8')
  const everything = text.replaceAll(/^#(?=[[a-z])/gm, '')

  it('CF-01 equals the defaults, each written out', () => {
    const { config, origins, warnings } = read(text)
    expect(config).toEqual(configSchema.parse({}))
    expect(warnings).toEqual([])
    const unwritten = Object.entries(origins).filter(([, origin]) => origin.from === 'default')
    expect(unwritten.map(([key]) => key)).toEqual(['permission.rules'])
  })

  it('CF-01 PO-02 CC-02 GR-06 documents every key, also those without a default', () => {
    const { warnings } = read(everything)
    expect(warnings).toEqual([])
    const written = new Set(keysOf(parse(everything)).map((key) => key.replace(/profiles\.\w+/, 'profiles.*')))
    const missing = allLeaves()
      .map((leaf) => leaf.key)
      .filter((key) => !written.has(key))
    expect(missing).toEqual([])
  })
})

describe('what config shares with other folders', () => {
  it('CC-02 GR-06 has a key for every class, and every mode for profiles', () => {
    expect(
      Object.keys(
        configSchema.parse({ commands: { classes: Object.fromEntries(COMMAND_CLASSES.map((name) => [name, 'ask'])) } })
          .commands.classes,
      ).sort(),
    ).toEqual([...COMMAND_CLASSES].sort())
    for (const mode of MODES) expect(configSchema.parse({ profiles: { p: { mode } } }).profiles.p).toEqual({ mode })
  })

  it('AP-02 reads durations', () => {
    expect(['none', '30m', '12h', '7d', '1s'].map(durationMs)).toEqual([
      undefined,
      1_800_000,
      43_200_000,
      604_800_000,
      1_000,
    ])
  })
})

function keysOf(value: unknown, path: string[] = []): string[] {
  if (Array.isArray(value))
    return [formatKey(path), ...value.flatMap((item) => (typeof item === 'object' ? keysOf(item, [...path, '*']) : []))]
  if (typeof value !== 'object' || value === null) return [formatKey(path)]
  return Object.entries(value).flatMap(([name, below]) => keysOf(below, [...path, name]))
}
