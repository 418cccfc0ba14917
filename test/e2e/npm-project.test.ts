import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startHost, type TestHost } from '../helpers/host.js'
import { type Bench, commandBench, factsOf, outputOf, textOf } from '../integration/command-bench.js'

let host: TestHost
let at: Bench
beforeAll(async () => {
  host = await startHost()
  at = await commandBench(host, { ceiling: 'full', network: ['registry.npmjs.org'] })
  const files: Record<string, string> = {
    'package.json': JSON.stringify({
      name: 'project',
      version: '1.0.0',
      type: 'module',
      scripts: { build: 'node build.js', test: 'node --test', dev: 'node dist/server.js' },
      dependencies: { 'is-number': '7.0.0' },
    }),
    'build.js':
      "import { mkdirSync, copyFileSync } from 'node:fs'\nmkdirSync('dist', { recursive: true })\ncopyFileSync('server.js', 'dist/server.js')\nconsole.log('built')\n",
    'server.js':
      "import { createServer } from 'node:http'\nimport isNumber from 'is-number'\ncreateServer((request, response) => response.end(String(isNumber(request.url.slice(1))))).listen(4711, '127.0.0.1', () => console.log('listening'))\n",
    'project.test.js':
      "import { test } from 'node:test'\nimport assert from 'node:assert'\nimport isNumber from 'is-number'\ntest('five is a number', () => assert(isNumber('5')))\n",
  }
  for (const [name, content] of Object.entries(files)) writeFileSync(join(host.workspace, name), content)
})
afterAll(async () => {
  await at.client.close()
  await host.stop()
})

/** Reads a background process by its cursor until its output shows what is waited for, or it is over. */
async function follow(
  process_id: string,
  until: RegExp,
): Promise<{ output: string; status: unknown; exit_code: unknown }> {
  let output = ''
  for (let cursor = 0; ; ) {
    const page = factsOf(await at.call('ProcessOutput', { process_id, cursor, wait_ms: 20_000 }))
    output += page.text as string
    cursor = page.cursor as number
    if (until.test(output) || page.status !== 'running')
      return { output, status: page.status, exit_code: page.exit_code }
  }
}

it('SH-01 SH-03 SB-01 a real project is installed, built, tested and served, in the foreground and in the background', {
  timeout: 300_000,
}, async () => {
  const installed = await at.bash('npm install --no-audit --no-fund', { timeout_ms: 200_000 }, { wait_ms: 45_000 })
  expect(textOf(installed)).toContain('added 1 package')
  expect(JSON.parse(readFileSync(join(host.workspace, 'node_modules/is-number/package.json'), 'utf8')).version).toBe(
    '7.0.0',
  )

  expect(outputOf(await at.bash('npm run --silent build'))).toBe('built\n')
  const tested = factsOf(await at.bash('npm test', { background: true })) as { process_id: string }
  const run = await follow(tested.process_id, /(?!)/)
  expect(run).toMatchObject({ status: 'exited', exit_code: 0 })
  expect(run.output).toMatch(/pass 1/)

  const served = factsOf(await at.bash('npm run --silent dev', { background: true })) as { process_id: string }
  expect((await follow(served.process_id, /listening/)).status).toBe('running')
  const get = (path: string) =>
    `node -e "fetch('http://127.0.0.1:4711/${path}').then(r=>r.text()).then(console.log,()=>console.log('nobody'))"`
  expect(outputOf(await at.bash(get('5')))).toBe('true\n')
  await at.call('ProcessInput', { process_id: served.process_id, signal: 'SIGKILL' })
  expect((await follow(served.process_id, /(?!)/)).status).toBe('exited')
  expect(outputOf(await at.bash(get('5')))).toBe('nobody\n')
  expect(readdirSync(host.workspace).sort()).toContain('dist')
})
