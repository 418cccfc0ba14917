import { expect, it } from 'vitest'
import { redact } from '../../src/operations/redact.js'

it('OP-17 values whose names say that they are secret are left out of the owner’s views, at any depth', () => {
  const shown = redact({
    path: 'a',
    password: 'p',
    env: [
      { API_KEY: 'k', PATH: '/bin' },
      { access_token: 't', tokens: 12 },
    ],
    headers: { Authorization: 'Bearer x', Cookie: 'c' },
  })
  expect(shown).toEqual({
    path: 'a',
    password: '[redacted]',
    env: [
      { API_KEY: '[redacted]', PATH: '/bin' },
      { access_token: '[redacted]', tokens: 12 },
    ],
    headers: { Authorization: '[redacted]', Cookie: '[redacted]' },
  })
})
