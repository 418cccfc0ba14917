import { expect, it } from 'vitest'
import { main } from '../torture/vanish-main.js'

it('GU-65 2,000 clients that connect and vanish at any moment leave no open file, no attachment and no memory behind', async () => {
  const { faults, figures } = await main({ cycles: 2000, say: () => {} })
  expect(faults, JSON.stringify(figures)).toEqual([])
}, 300_000)
