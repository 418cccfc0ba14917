import { buildProgram } from '../../dist/cli/program.js'

/** Columns of the help texts, whatever terminal the documents are made in. */
const WIDTH = 110

/** Every command's `--help`, as the program prints it. */
export function commandPages() {
  const said = []
  const nobody = { out: async () => {}, err: async () => {}, columns: undefined, ask: undefined }
  const program = buildProgram({ output: nobody, ask: undefined }, said)
  return leaves(program, [])
    .map(({ command, path }) => {
      said.length = 0
      command.configureOutput({ getOutHelpWidth: () => WIDTH }).outputHelp()
      return `### ${path.join(' ')}\n\n\`\`\`text\n${withoutGlobals(said.join('').trim())}\n\`\`\``
    })
    .join('\n\n')
}

/** The program itself, and every command that does something. */
function leaves(command, above) {
  const path = [...above, command.name()]
  const below = command.commands.flatMap((one) => leaves(one, path))
  return above.length === 0 || command.commands.length === 0 ? [{ command, path }, ...below] : below
}

/** The options that every command has stand once, in the first text. */
function withoutGlobals(help) {
  return help.replace(/\n\nGlobal Options:\n( {2}.*\n?)*/, '\n')
}
