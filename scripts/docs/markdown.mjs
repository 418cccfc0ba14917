/** A Markdown table; what would end a cell is written so that it does not. */
export function table(head, rows) {
  const line = (cells) =>
    `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n')
}

export function code(text) {
  return `\`${text}\``
}

/**
 * Pairs what the program has with the sentences that are written about it.
 * @throws Error where one has no counterpart, so that no page is silently incomplete or about nothing.
 */
export function pair(what, names, sentences) {
  const untold = names.filter((name) => !Object.hasOwn(sentences, name))
  const gone = Object.keys(sentences).filter((name) => !names.includes(name))
  if (untold.length > 0) throw new Error(`No sentence about ${what}: ${untold.join(', ')}. Write it in scripts/docs/.`)
  if (gone.length > 0) throw new Error(`Sentences about ${what} that do not exist: ${gone.join(', ')} (scripts/docs/).`)
  return names.map((name) => [name, sentences[name]])
}

/** The fields of a JSON Schema object: name, type, whether it is needed or its default, meaning. */
export function fieldTable(schema, leaveOut = []) {
  const fields = Object.entries(schema.properties ?? {}).filter(([name]) => !leaveOut.includes(name))
  if (fields.length === 0) return 'No arguments.'
  const rows = fields.map(([name, field]) => [
    code(name),
    typeOf(field),
    schema.required?.includes(name) && field.default === undefined ? 'needed' : defaultOf(field),
    field.description ?? '',
  ])
  return table(['argument', 'type', 'default', 'meaning'], rows)
}

function defaultOf(field) {
  return field.default === undefined ? '' : code(JSON.stringify(field.default))
}

function typeOf(field) {
  if (field.enum) return field.enum.map((value) => code(value)).join(', ')
  if (field.const !== undefined) return code(JSON.stringify(field.const))
  const choices = field.anyOf ?? field.oneOf
  if (choices) return choices.map(typeOf).join(' or ')
  if (field.type === 'array')
    return `list of ${typeOf(field.items ?? {})}${lengths(field.minItems, field.maxItems, 'items')}`
  if (field.type === 'string') return `text${lengths(field.minLength, field.maxLength, 'characters')}`
  if (field.type === 'object')
    return field.properties ? `object (${Object.keys(field.properties).map(code).join(', ')})` : 'object'
  return `${field.type ?? 'anything'}${lengths(field.minimum, field.maximum, '')}`
}

function lengths(least, most, unit) {
  if (least === undefined && most === undefined) return ''
  if (most === undefined) return least === 0 ? '' : `, at least ${least} ${unit}`.trimEnd()
  return `, ${least ?? 0} to ${most} ${unit}`.trimEnd()
}
