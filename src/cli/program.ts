/** Placeholder of the command line: prints usage. @returns the exit code, 2. */
export async function runProgram(_argv: readonly string[]): Promise<number> {
  process.stderr.write('Usage: kiki mcp --client ID --tools [--session REF] [--home DIR] [--no-start]\n')
  return 2
}
