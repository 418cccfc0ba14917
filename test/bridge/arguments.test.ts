import { expect, it } from 'vitest'
import { parseArguments } from '../../src/bridge/arguments.js'
import { KikiError } from '../../src/lib/errors.js'

it('CL-10 every option is read, as two words or one', () => {
  expect(
    parseArguments(['--client', 'client_1', '--tools', '--session=ext_1', '--home', '/h', '--no-start', '--discovery']),
  ).toEqual({ client: 'client_1', session: 'ext_1', discovery: true, home: '/h', mayStart: false })
  expect(parseArguments(['--tools', '--client=client_1', '--home=/a=b'])).toMatchObject({
    session: undefined,
    discovery: false,
    home: '/a=b',
    mayStart: true,
  })
})

it.each([
  [['--client', 'c', '--tools', '--nope'], 'Unknown argument "--nope"'],
  [['--client', 'c', '--tools', 'extra'], 'Unknown argument "extra"'],
  [['--client', 'c', '--tools=1'], 'Unknown argument "--tools=1"'],
  [['--tools', '--client'], '--client needs a value'],
  [['--tools', '--client='], '--client needs a value'],
  [['--client', '--tools'], '--client needs a value'],
  [['--client', 'c'], '--tools is missing'],
  [['--tools'], '--client is missing'],
  [['--client', 'c', '--client', 'd', '--tools'], '--client is given twice'],
])('CL-10 %j is refused: %s', (argv, message) => {
  expect(() => parseArguments(argv)).toThrow(KikiError)
  expect(() => parseArguments(argv)).toThrow(message)
})
