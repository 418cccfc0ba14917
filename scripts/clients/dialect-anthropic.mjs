// Anthropic's Messages API, as Claude Code uses it.

export const anthropic = {
  name: 'anthropic messages',
  matches: (path) => /\/messages(\/count_tokens)?$/.test(path),
  tools: (body) => (body.tools ?? []).map((tool) => tool.name),
  results: (body) => {
    const blocks = blocksOf(body)
    const calls = new Set(blocks.filter(({ name }) => name?.includes('kiki')).map(({ id }) => id))
    return blocks.filter((block) => block.type === 'tool_result' && calls.has(block.tool_use_id))
  },
  /** Claude Code names MCP tools in the prompt only; a model has to load a tool's schema by a call of ToolSearch. */
  prepare(body, tool) {
    const known = (body.tools ?? []).map(({ name }) => name)
    const full = known.find((name) => name === `mcp__kiki__${tool}`)
    if (full !== undefined || !known.includes('ToolSearch')) return undefined
    if (JSON.stringify(blocksOf(body)).includes(`"query":"select:mcp__kiki__${tool}"`)) return undefined
    return { tool: 'ToolSearch', args: { query: `select:mcp__kiki__${tool}` } }
  },
  reply(response, body, action) {
    if (body.max_tokens === undefined) {
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"input_tokens":1}')
      return
    }
    const block = action.tool
      ? { type: 'tool_use', id: `toolu_${Date.now()}`, name: action.tool, input: action.args }
      : { type: 'text', text: action.text }
    const message = {
      id: `msg_${Date.now()}`,
      type: 'message',
      role: 'assistant',
      model: body.model,
      content: [block],
      stop_reason: action.tool ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    if (!body.stream) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(message))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of eventsOf(message, block)) {
      response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    }
    response.end()
  },
}

function blocksOf(body) {
  return (body.messages ?? []).flatMap((message) => (Array.isArray(message.content) ? message.content : []))
}

function eventsOf(message, block) {
  const isTool = block.type === 'tool_use'
  const delta = isTool
    ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) }
    : { type: 'text_delta', text: block.text }
  return [
    { type: 'message_start', message: { ...message, content: [], stop_reason: null } },
    { type: 'content_block_start', index: 0, content_block: isTool ? { ...block, input: {} } : { ...block, text: '' } },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { stop_reason: message.stop_reason, stop_sequence: null },
      usage: { output_tokens: 1 },
    },
    { type: 'message_stop' },
  ]
}
