// Google's Gemini API (generateContent), as Gemini CLI uses it.

export const gemini = {
  name: 'gemini',
  matches: (path) => /:(streamGenerateContent|generateContent|countTokens)$/.test(path),
  tools: (body) => (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map((tool) => tool.name),
  results: (body) =>
    (body.contents ?? []).flatMap((content) => content.parts ?? []).filter((part) => part.functionResponse),
  reply(response, body, action) {
    // Gemini CLI adds this parameter to every tool; a real model uses it.
    if (action.tool && JSON.stringify(body.tools).includes('"wait_for_previous"')) action.args.wait_for_previous = true
    const wantsJson = body.generationConfig?.responseMimeType === 'application/json'
    const text = wantsJson ? JSON.stringify(sideAnswer(body.generationConfig, action.text)) : action.text
    const part = action.tool ? { functionCall: { name: action.tool, args: action.args } } : { text }
    const candidate = { index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }
    const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 }
    const answer = { candidates: [candidate], usageMetadata, totalTokens: 1 }
    if (/:(generateContent|countTokens)/.test(response.req.url)) {
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(`data: ${JSON.stringify(answer)}\n\n`)
  },
}

/** Gemini CLI asks a small model to choose a model, and wants an object of a given form. */
function sideAnswer(config, text) {
  const properties = (config.responseJsonSchema ?? config.responseSchema)?.properties ?? {}
  return Object.fromEntries(Object.entries(properties).map(([name, { enum: choices }]) => [name, choices?.[0] ?? text]))
}
