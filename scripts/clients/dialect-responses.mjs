// OpenAI's Responses API, as Codex uses it.

export const responses = {
  name: 'openai responses',
  matches: (path) => path.endsWith('/responses'),
  tools: (body) => (body.tools ?? []).flatMap((tool) => namesOf(tool)),
  results: (body) =>
    (Array.isArray(body.input) ? body.input : []).filter((item) => /_call_output$/.test(item.type ?? '')),
  reply(response, _body, action) {
    const id = `resp_${Date.now()}`
    const item = action.tool
      ? { type: 'function_call', id: `fc_${Date.now()}`, call_id: `call_${Date.now()}`, ...callOf(action) }
      : {
          type: 'message',
          id: `msg_${Date.now()}`,
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: action.text, annotations: [] }],
        }
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 }
    const events = [
      { type: 'response.created', response: { id } },
      { type: 'response.output_item.added', output_index: 0, item },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id, status: 'completed', output: [item], usage } },
    ]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  },
}

/** Codex sends the tools of one MCP server as one namespace; the log names them as `namespace/tool`. */
function namesOf(tool) {
  if (tool.type !== 'namespace') return [tool.name ?? tool.type]
  return tool.tools.map((inner) => `${tool.name}/${inner.name}`)
}

function callOf({ tool, args }) {
  const slash = tool.lastIndexOf('/')
  const named = slash < 0 ? { name: tool } : { namespace: tool.slice(0, slash), name: tool.slice(slash + 1) }
  return { ...named, arguments: JSON.stringify(args) }
}
