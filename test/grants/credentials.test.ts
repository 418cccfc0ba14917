import { randomBytes } from 'node:crypto'
import { SignJWT } from 'jose'
import { expect, it } from 'vitest'
import { CREDENTIAL_SECONDS, createCredentials } from '../../src/grants/credentials.js'

const key = randomBytes(32)
const time = { now: Date.parse('2026-01-01T00:00:00Z'), behind: 0 }
const clock = { now: () => time.now, monotonic: () => time.now - time.behind }
const credentials = createCredentials({ key, homeId: 'home_a', clock })
const bearer = { connectionId: 'client_1', bridgeId: 'bridge_1' }

it('GR-04 names one connection and one bridge, and ends within 10 minutes', async () => {
  const token = await credentials.issue(bearer)
  expect(await credentials.verify(token)).toEqual(bearer)
  time.now += 600_000
  await expect(credentials.verify(token)).rejects.toMatchObject({ code: 'permission_denied' })
})

it('GR-04 is of no use with another key, for another home, for another purpose or without its signature', async () => {
  const others = [
    createCredentials({ key: randomBytes(32), homeId: 'home_a', clock }).issue(bearer),
    createCredentials({ key, homeId: 'home_b', clock }).issue(bearer),
    new SignJWT({ bridge: 'bridge_1' })
      .setProtectedHeader({ alg: 'HS256' })
      .setIssuer('home_a')
      .setAudience('something else')
      .setSubject('client_1')
      .setExpirationTime(Math.floor(time.now / 1000) + 60)
      .sign(key),
    credentials.issue(bearer).then((token) => {
      const head = Buffer.from('{"alg":"none"}').toString('base64url')
      return `${head}.${token.split('.')[1]}.`
    }),
  ]
  for (const token of await Promise.all(others)) {
    await expect(credentials.verify(token)).rejects.toMatchObject({ code: 'permission_denied' })
  }
})

it('GU-44 GR-04 a wall clock that is put back gives a credential no more time', async () => {
  const HOUR = 3_600_000
  const token = await credentials.issue(bearer)
  time.now -= HOUR
  time.behind -= HOUR
  expect(await credentials.verify(token)).toEqual(bearer)
  time.now += CREDENTIAL_SECONDS * 1000 - 1
  expect(await credentials.verify(token)).toEqual(bearer)
  time.now += 1
  await expect(credentials.verify(token)).rejects.toMatchObject({ code: 'permission_denied' })
})
