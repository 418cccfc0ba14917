import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { takeLock } from '../../src/store/lock.js'
import { storeHome } from './home.js'

let home: ReturnType<typeof storeHome>
let file: string
beforeEach(() => {
  home = storeHome()
  file = join(home.dir, 'host.lock')
})
afterEach(() => home.remove())

/** A process that takes the lock and keeps it; resolves with what it got. */
async function holder() {
  const module = new URL('../../dist/store/lock.js', import.meta.url).href
  const script = `
    const { takeLock } = await import(${JSON.stringify(module)})
    process.stdout.write(takeLock(${JSON.stringify(file)}) ? 'won' : 'lost')
    setInterval(() => {}, 1e6)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  return {
    won: said.toString() === 'won',
    async kill() {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

it('GU-40 a home has one lock: in this process, in another, until it is given back', async () => {
  const release = takeLock(file)
  expect(release).toBeTypeOf('function')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(takeLock(file)).toBeUndefined()
  const other = await holder()
  expect(other.won).toBe(false)
  await other.kill()
  expect(takeLock(file)).toBeUndefined()
  release?.()
  takeLock(file)?.()
})

it('GU-40 kill -9 frees the lock; reading the file in another process frees nothing', async () => {
  const other = await holder()
  expect(other.won).toBe(true)
  readFileSync(file)
  expect(takeLock(file)).toBeUndefined()
  await other.kill()
  const release = takeLock(file)
  expect(release).toBeDefined()
  release?.()
})

it('GU-40 of many that come at once exactly one gets it', async () => {
  for (let round = 0; round < 4; round++) {
    rmSync(file, { force: true })
    const all = await Promise.all(Array.from({ length: 5 }, holder))
    expect(all.filter(({ won }) => won)).toHaveLength(1)
    await Promise.all(all.map(({ kill }) => kill()))
  }
})

it('a lock file that is none is an error that says what to do', () => {
  writeFileSync(file, 'not a lock '.repeat(100))
  expect(() => takeLock(file)).toThrow('cannot be used')
  rmSync(file)
  mkdirSync(file)
  expect(() => takeLock(file)).toThrow('cannot be used')
})
