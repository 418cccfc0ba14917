import { CONTROL_TOOLS } from '../../dist/control/control.js'
import { CATALOG } from '../../dist/tools/catalog.js'
import { definitionOf } from '../../dist/tools/schema.js'
import { code, fieldTable, table } from './markdown.mjs'

/** An overview, then every native tool with its arguments. */
export function nativeTools() {
  const overview = table(
    ['tool', 'family', 'effect', 'does'],
    CATALOG.map((tool) => [`[${tool.name}](#${tool.name.toLowerCase()})`, tool.family, tool.effect, tool.title]),
  )
  const pages = CATALOG.map((tool) =>
    page(definitionOf(tool, true), `Family ${code(tool.family)}, effect ${code(tool.effect)}.`),
  )
  return [overview, ...pages].join('\n\n')
}

export function controlTools() {
  return CONTROL_TOOLS.map(({ definition }) => page(definition, '')).join('\n\n')
}

function page({ name, description, inputSchema }, facts) {
  return [`### ${name}`, ...(facts ? [facts] : []), description, fieldTable(inputSchema, ['_kiki'])].join('\n\n')
}
