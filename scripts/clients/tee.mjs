// Stands between a client and `kiki mcp`: copies both directions and writes each line to a log, with its time.
// HOLD_MS holds each answer to tools/call back, to see what the client makes of a long call; START_MS holds its first
// message back, to see what it does when a server is slow to start.
// Usage: node tee.mjs LOG HOLD_MS START_MS COMMAND ARGS…
import { spawn } from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const [log, holdMs, startMs, command, ...args] = process.argv.slice(2)
if (!log || startMs === undefined || !command) {
  console.error('usage: node tee.mjs LOG HOLD_MS START_MS COMMAND ARGS…')
  process.exit(2)
}
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
const started = performance.now()
/** Ids of the client's calls that are not answered. */
const calls = new Set()

function note(from, message) {
  appendFileSync(log, `${JSON.stringify({ ms: Math.round(performance.now() - started), from, ...message })}\n`)
}

function copy(input, output, from, hold) {
  createInterface({ input }).on('line', (line) => {
    const message = JSON.parse(line)
    note(from, { message })
    if (from === 'client' && message.method === 'tools/call') calls.add(message.id)
    const late = from === 'kiki' && message.method === undefined && calls.delete(message.id)
    if (late && hold > 0) setTimeout(() => output.write(`${line}\n`), hold)
    else output.write(`${line}\n`)
  })
}

setTimeout(() => copy(process.stdin, child.stdin, 'client', 0), Number(startMs))
copy(child.stdout, process.stdout, 'kiki', Number(holdMs))
process.stdin.on('end', () => {
  note('client', { end: true })
  child.stdin.end()
})
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
  process.on(signal, () => {
    note('client', { signal })
    child.kill(signal)
  })
}
child.on('exit', (code, signal) => {
  note('kiki', { exit: code ?? signal })
  process.exit(code ?? 1)
})
