import { closeSync, openSync, writeSync } from 'node:fs'
import { constants } from 'node:os'
import type { Target } from './members.js'
import type { Pipes } from './pipes.js'
import { gateWords, named, watchEnd } from './start-command.js'
import {
  attach,
  endedEarly,
  findProgram,
  type Place,
  type Reports,
  type SpawnMessage,
  type Started,
} from './start-plain.js'

/** Waits for a word in a named pipe: a terminal's child has no other descriptors. */
const TERMINAL_GATE = 'gate=$1; shift; read -r word <"$gate" && [ "$word" = go ] && exec "$@"'

/** A command in a pseudo-terminal, copied to and from the host (SH-04). */
export async function startTerminal(
  message: SpawnMessage,
  size: { columns: number; rows: number },
  place: Place,
  pipes: Pipes,
  on: Reports,
): Promise<Started> {
  // A native library: loaded only where a terminal is asked for.
  const { spawn } = await import('@lydell/node-pty')
  const gate = await pipes.take()
  const socket = await attach(place, message.id, 1)
  if (on.ended() || place.closed) {
    socket.destroy()
    throw endedEarly()
  }
  const mark = pipes.mark()
  const held = openSync(gate, 'r+')
  const words = gateWords(message, mark, TERMINAL_GATE)
  // Before the program, after bash's own words and the mark.
  words.splice(6, 0, gate)
  const pty = spawn(findProgram({ ...message, argv: ['bash'] }), words, {
    name: 'xterm-256color',
    cols: size.columns,
    rows: size.rows,
    cwd: message.cwd,
    env: message.env,
    encoding: null,
  })
  const target: Target = { pid: pty.pid, mark, over: false }
  const ends = watchEnd(message, target, on)
  pty.onData((data: string | Buffer) => {
    if (!socket.write(data)) pty.pause()
  })
  socket.on('drain', () => pty.resume())
  socket.on('data', (data) => pty.write(data as unknown as string))
  socket.resume()
  pty.onExit(({ exitCode, signal }) => {
    closeSync(held)
    socket.end()
    ends.over(signal ? null : exitCode, signalName(signal))
  })
  on.say({ type: 'spawned', id: message.id, ...named(target) })
  const go = () => void writeSync(held, 'go\n')
  if (!message.held) go()
  return { ...ends, go }
}

function signalName(number: number | undefined): NodeJS.Signals | null {
  const found = Object.entries(constants.signals).find(([, value]) => value === number)
  return found === undefined ? null : (found[0] as NodeJS.Signals)
}
