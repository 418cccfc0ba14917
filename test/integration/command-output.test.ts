import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { type Bench, commandBench, factsOf, operationOf, outputOf, sleeping, textOf } from './command-bench.js'

const MB = 1024 * 1024
let host: TestHost
let at: Bench
beforeAll(async () => {
  host = await startHost()
  at = await commandBench(host, { ceiling: 'full' })
})
afterAll(async () => {
  await at.client.close()
  await host.stop()
})

/** Bytes of memory that the host holds. */
function memoryOf(pid: number): number {
  const kb = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kb) * 1024
}

async function read(operation_id: string, offset: number, part = 0) {
  const page = await at.client.call('kiki_operation', { action: 'read', operation_id, part, offset, limit: 256_000 })
  const { text = '', next } = page.structuredContent as { text: string; next?: { arguments: { offset: number } } }
  return { text, next: next?.arguments.offset }
}

it('SH-01 OP-14 200 MB of output does not grow the host by more than 64 MB, and is paged back whole', {
  timeout: 300_000,
}, async () => {
  await at.bash('echo warm')
  const before = memoryOf(host.pid)
  let most = before
  const looking = setInterval(() => {
    most = Math.max(most, memoryOf(host.pid))
  }, 20)
  const lines = `const line = (n) => 'line ' + n + ' ' + 'x'.repeat(n % 180) + '\\n'`
  const script = `${lines}; let n = 0, out = ''; const write = () => { while (n < 2000000) { out += line(n++); if (out.length > 65536) { const more = process.stdout.write(out); out = ''; if (!more) return process.stdout.once('drain', write) } } process.stdout.end(out) }; write()`
  writeFileSync(join(host.workspace, 'much.js'), script)
  const done = await at.bash('node much.js', { timeout_ms: 250_000 }, { wait_ms: 45_000 })
  clearInterval(looking)
  const { operation_id } = operationOf(done)
  const bytes = factsOf(done).output_bytes as number
  expect(bytes).toBeGreaterThan(180 * MB)
  expect((most - before) / MB).toBeLessThan(64)
  expect(outputOf(done)).toMatch(/^line 0 \n[\s\S]+characters are left out here[\s\S]+line 1999999 x+\n$/)

  const hash = createHash('sha256')
  let length = 0
  for (let offset: number | undefined = 0; offset !== undefined; ) {
    const page = await read(operation_id, offset)
    hash.update(page.text)
    length += page.text.length
    offset = page.next
  }
  const expected = createHash('sha256')
  for (let n = 0; n < 2_000_000; n++) expected.update(`line ${n} ${'x'.repeat(n % 180)}\n`)
  expect(length).toBe(bytes)
  expect(hash.digest('hex')).toBe(expected.digest('hex'))
})

it('OP-08 SH-03 a command that outlives the wait stays its operation, and its output so far is in the receipt', async () => {
  const receipt = await at.bash(
    'echo first; while [ ! -e go ]; do sleep 0.05; done; echo second',
    {},
    { wait_ms: 1500 },
  )
  expect(receipt.structuredContent).toMatchObject({ status: 'running', output_so_far: 'first\n' })
  const { operation_id } = operationOf(receipt)
  writeFileSync(join(host.workspace, 'go'), '')
  const done = await at.client.call('kiki_operation', { action: 'wait', operation_id })
  expect(outputOf(done)).toBe('first\nsecond\n')
})

it('OP-16 GU-05 what a command had written before its host died is kept beside the unknown outcome', async () => {
  const own = await startHost()
  try {
    const bench = await commandBench(own, { ceiling: 'full', sandbox: 'off' })
    const receipt = await bench.bash('echo before; setsid sleep 733 & sleep 734', {}, { wait_ms: 2000 })
    expect(sleeping(['733', '734'])).toEqual(['733', '734'])
    await bench.client.close()
    await own.kill()
    await own.restart()
    expect(sleeping(['733', '734'])).toEqual([])
    const { operation_id } = operationOf(receipt)
    const shown = await own.api<{ status: string; result: string }>('GET', `/api/operations/${operation_id}`)
    expect(shown.status).toBe('outcome_unknown')
    expect(shown.result).toMatch(/^before\n[\s\S]*outcome_unknown: /)
  } finally {
    await own.stop()
  }
})

it('OP-07 SE-14 saved output goes with its operation', async () => {
  const bench = await commandBench(host, { ceiling: 'full' })
  const done = await bench.bash('head -c 200000 /dev/zero | tr "\\0" x')
  const folder = join(host.home, 'output', operationOf(done).operation_id)
  expect(readdirSync(folder)).toContain('index.json')
  await bench.client.close()
  await host.api('DELETE', `/api/sessions/${bench.session}`)
  expect(existsSync(folder)).toBe(false)
})

it('SH-05 non-UTF-8 output is shown with replacement characters', async () => {
  const done = await at.bash(`printf 'a\\377b\\033[31mred\\033[0m\\n'`)
  expect(outputOf(done)).toBe('a\ufffdbred\n')
  expect(textOf(done)).toContain('Exit code 0')
})

it('GU-10 GU-11 the same key with the same command runs once and is replayed with its output', async () => {
  mkdirSync(join(host.workspace, 'once'), { recursive: true })
  const call = () =>
    at.client.call('Bash', { command: 'echo ran >> once/log; echo out', _kiki: { idempotency_key: 'same-command' } })
  const [first, ...rest] = await Promise.all(Array.from({ length: 8 }, call))
  expect(new Set([first, ...rest].map((one) => operationOf(one as never).operation_id)).size).toBe(1)
  expect(textOf(await call())).toMatch(/^Replayed: nothing ran now[\s\S]*\nout\n/)
  expect(readFileSync(join(host.workspace, 'once/log'), 'utf8')).toBe('ran\n')
})
