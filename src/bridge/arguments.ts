import { defaultHome } from '../config/home.js'
import { KikiError } from '../lib/errors.js'

export interface BridgeOptions {
  /** Id of the connection, `client_…`. */
  client: string
  /** Session to attach to from the start, `ext_…`. */
  session: string | undefined
  discovery: boolean
  home: string
  /** False with `--no-start`: a host that does not run is an error. */
  mayStart: boolean
}

const WITH_VALUE = ['--client', '--session', '--home']
const SWITCHES = ['--tools', '--discovery', '--no-start']

/**
 * Reads `--client ID --tools [--session REF] [--discovery] [--home DIR] [--no-start]` (CL-10); `--name=value` works too.
 * @throws KikiError `invalid_arguments` for anything unknown, repeated or missing.
 */
export function parseArguments(argv: readonly string[]): BridgeOptions {
  const values = new Map<string, string>()
  for (let at = 0; at < argv.length; at++) {
    const arg = argv[at] ?? ''
    const equals = arg.startsWith('--') ? arg.indexOf('=') : -1
    const name = equals > 0 ? arg.slice(0, equals) : arg
    const takesValue = WITH_VALUE.includes(name)
    if (!takesValue && !(SWITCHES.includes(name) && equals < 0)) throw wrong(`Unknown argument ${JSON.stringify(arg)}.`)
    if (values.has(name)) throw wrong(`${name} is given twice.`)
    const value = !takesValue ? 'yes' : equals > 0 ? arg.slice(equals + 1) : argv[++at]
    if (!value || (equals < 0 && value.startsWith('--'))) throw wrong(`${name} needs a value.`)
    values.set(name, value)
  }
  const client = values.get('--client')
  if (client === undefined) throw wrong('--client is missing.')
  if (!values.has('--tools')) throw wrong('--tools is missing.')
  return {
    client,
    session: values.get('--session'),
    discovery: values.has('--discovery'),
    home: values.get('--home') ?? defaultHome(),
    mayStart: !values.has('--no-start'),
  }
}

function wrong(message: string): KikiError {
  return new KikiError('invalid_arguments', message, {
    hint: 'Usage: kiki mcp --client ID --tools [--session REF] [--discovery] [--home DIR] [--no-start]',
  })
}
