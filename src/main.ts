#!/usr/bin/env node
// The bridge is picked before anything else is loaded: its start time is a promise (SP-01).
const argv = process.argv.slice(2)
const isBridge = argv[0] === 'mcp' && argv.some((arg) => arg === '--client' || arg.startsWith('--client='))

if (isBridge) {
  const { runBridge } = await import('./bridge/bridge.js')
  process.exit(await runBridge(argv.slice(1)))
} else {
  const { runProgram } = await import('./cli/program.js')
  const code = await runProgram(argv)
  // Standard output to a pipe is written later; leaving at once would cut it off.
  process.stdout.write('', () => process.exit(code))
}

export {}
