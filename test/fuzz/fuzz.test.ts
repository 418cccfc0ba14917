import { expect, it } from 'vitest'
import { main } from '../torture/fuzz-main.js'

it('GU-66 1,200 random and mutated messages, requests, config files and edits, and 1,200 patches: the host lives, answers and keeps what it has', async () => {
  const { faults, figures } = await main({ inputs: 1200, seed: 1, say: () => {} })
  expect(faults, JSON.stringify(figures)).toEqual([])
}, 120_000)
