// OpenAI's Chat Completions API, as opencode uses it for any provider with a baseURL.

export const chat = {
  name: 'openai chat',
  matches: (path) => path.endsWith('/chat/completions'),
  tools: (body) => (body.tools ?? []).map((tool) => tool.function.name),
  results: (body) => body.messages.filter((message) => message.role === 'tool'),
  reply(response, body, action) {
    const id = `chat_${Date.now()}`
    const call = action.tool && {
      index: 0,
      id: `call_${Date.now()}`,
      type: 'function',
      function: { name: action.tool, arguments: JSON.stringify(action.args) },
    }
    const said = call ? { role: 'assistant', tool_calls: [call] } : { role: 'assistant', content: action.text }
    const finish = call ? 'tool_calls' : 'stop'
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    const head = { id, created: 1, model: body.model }
    if (!body.stream) {
      const choices = [{ index: 0, message: said, finish_reason: finish }]
      const whole = { ...head, object: 'chat.completion', choices, usage }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(whole))
      return
    }
    const object = 'chat.completion.chunk'
    const chunks = [
      { ...head, object, choices: [{ index: 0, delta: said, finish_reason: null }] },
      { ...head, object, choices: [{ index: 0, delta: {}, finish_reason: finish }], usage },
    ]
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const chunk of chunks) response.write(`data: ${JSON.stringify(chunk)}\n\n`)
    response.end('data: [DONE]\n\n')
  },
}
