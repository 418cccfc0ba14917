import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readStaticFiles } from '../../src/http/static.js'
import { raw, startOwnerServer } from '../helpers/owner-server.js'

let folder: string
let server: Awaited<ReturnType<typeof startOwnerServer>>

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kiki-static-'))
  const web = join(folder, 'web')
  mkdirSync(join(web, 'assets'), { recursive: true })
  writeFileSync(join(web, 'index.html'), '<!doctype html><title>Kiki</title>')
  writeFileSync(join(web, 'assets', 'index-Ab12_-zZ.js'), 'export {}')
  writeFileSync(join(web, 'icon.svg'), '<svg xmlns="http://www.w3.org/2000/svg"/>')
  writeFileSync(join(folder, 'owner.token'), 'TOP SECRET')
  symlinkSync(join(folder, 'owner.token'), join(web, 'assets', 'link.js'))
  server = await startOwnerServer({ files: readStaticFiles(web) })
})
afterAll(async () => {
  await server.close()
  rmSync(folder, { recursive: true })
})

it('GU-62 the page is served with its types; hashed files are kept, the page itself is asked for each time', async () => {
  const expected = [
    ['/', 'text/html; charset=utf-8', 'no-cache'],
    ['/index.html', 'text/html; charset=utf-8', 'no-cache'],
    ['/icon.svg', 'image/svg+xml', 'no-cache'],
    ['/assets/index-Ab12_-zZ.js', 'text/javascript; charset=utf-8', 'public, max-age=31536000, immutable'],
  ]
  for (const [path, type, cache] of expected) {
    const answer = await fetch(server.url + path)
    expect([answer.status, answer.headers.get('content-type'), answer.headers.get('cache-control')]).toEqual([
      200,
      type,
      cache,
    ])
    const head = await fetch(server.url + path, { method: 'HEAD' })
    expect([head.status, await head.text()]).toEqual([200, ''])
  }
})

it('GU-62 nothing outside the built page is served, however it is spelled, and links in it are not followed', async () => {
  const paths = [
    '/../owner.token',
    '/assets/../../owner.token',
    '/..%2fowner.token',
    '/%2e%2e/owner.token',
    '/%2e%2e%2fowner.token',
    '/assets/..%5c..%5cowner.token',
    '/assets/%252e%252e/%252e%252e/owner.token',
    '//owner.token',
    '/assets/link.js',
    '/assets',
    '/assets/',
    '/assets/index-Ab12_-zZ.js%00',
    '/%ff',
    '/index.html/',
    '/__proto__',
  ]
  for (const path of paths) {
    const answer = await raw(
      server.port,
      `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nConnection: close\r\n\r\n`,
    )
    expect([answer.status, path]).toEqual([404, path])
    expect(answer.body).not.toContain('TOP SECRET')
  }
})

it('a page that was not built says so', async () => {
  const bare = await startOwnerServer({ files: readStaticFiles(join(folder, 'nothing')) })
  const answer = await fetch(bare.url)
  expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('npm run build')])
  await bare.close()
})
