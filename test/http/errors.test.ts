import { expect, it } from 'vitest'
import { HTTP_STATUS } from '../../src/http/errors.js'
import { ERROR_CODES } from '../../src/lib/errors.js'
import type { Log } from '../../src/lib/log.js'
import { OWNER_TOKEN, startOwnerServer } from '../helpers/owner-server.js'

const headers = { authorization: `Bearer ${OWNER_TOKEN}` }

it('every code has a status that says failure', () => {
  for (const code of ERROR_CODES) expect(HTTP_STATUS[code]).toBeGreaterThanOrEqual(400)
})

it('a refusal is told whole; a bug is logged with an id and told without details', async () => {
  const logged: { fields: object; message: string }[] = []
  const record = (fields: object, message: string) => void logged.push({ fields, message })
  const log: Log = { error: record, warn: record, info: record, debug: record }
  const server = await startOwnerServer({ log })
  const refused = await fetch(`${server.url}/api/refused`, { headers })
  expect(refused.status).toBe(409)
  expect(await refused.json()).toEqual({
    error: { code: 'conflict', message: 'It is so already.', hint: 'Look first.', data: { id: 'x' } },
  })
  expect(logged).toEqual([])

  const bug = await fetch(`${server.url}/api/bug`, { headers })
  const text = await bug.text()
  expect(bug.status).toBe(500)
  expect(text).not.toContain('secret detail')
  const body = JSON.parse(text) as { error: { code: string; data: { error_id: string } } }
  expect(body.error.code).toBe('internal_error')
  expect(logged).toHaveLength(1)
  expect(logged[0]?.fields).toMatchObject({ error_id: body.error.data.error_id, path: '/api/bug', name: 'TypeError' })
  await server.close()
})

it('an unknown route of the API is a JSON 404, any other a plain one', async () => {
  const server = await startOwnerServer()
  for (const path of ['/api/nothing', '/api/effects/../nothing', '/api']) {
    const answer = await fetch(server.url + path, { headers })
    expect([answer.status, ((await answer.json()) as { error: { code: string } }).error.code]).toEqual([
      404,
      'not_found',
    ])
  }
  const other = await fetch(`${server.url}/nothing`)
  expect([other.status, other.headers.get('content-type')]).toEqual([404, 'text/plain; charset=UTF-8'])
  await server.close()
})
