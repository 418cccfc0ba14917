// A loopback stand-in for a model service: a scripted "model" that calls Kiki's tools and then answers.
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { anthropic } from './dialect-anthropic.mjs'
import { chat } from './dialect-chat.mjs'
import { gemini } from './dialect-gemini.mjs'
import { responses } from './dialect-responses.mjs'

const DIALECTS = [anthropic, responses, chat, gemini]

/** A control tool as Claude Code names it in its prompt, where it keeps the tools of MCP servers out of the list. */
const CLAUDE_NAME = 'mcp__kiki__kiki_session'

/**
 * Serves every dialect on one loopback port.
 * @param {{ steps: { tool: string, args: object }[], answer: string, log: string }} script
 *   `steps` are played one a turn, each once the result of the one before has arrived; then `answer` is said.
 */
export async function startStandIn({ steps, answer, log }) {
  const note = (entry) => appendFileSync(log, `${JSON.stringify(entry)}\n`)
  const server = createServer(async (request, response) => {
    const path = new URL(request.url, 'http://model').pathname
    const dialect = request.method === 'POST' ? DIALECTS.find((one) => one.matches(path)) : undefined
    let text = ''
    for await (const chunk of request) text += chunk
    if (dialect === undefined) {
      note({ path, method: request.method, unanswered: true })
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"error":{"message":"no such route"}}')
      return
    }
    const body = JSON.parse(text)
    const results = dialect.results(body)
    const action = nextAction({ dialect, body, text, step: steps[results.length], answer })
    note({ path, dialect: dialect.name, tools: dialect.tools(body), results, action, body })
    dialect.reply(response, body, action)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Side requests of a client (a title, a classification) do not tell of Kiki's tools and get the answer as text. */
function nextAction({ dialect, body, text, step, answer }) {
  const tools = dialect.tools(body)
  const listed = tools.find((name) => name.endsWith('kiki_session'))
  const known = listed ?? (text.includes(CLAUDE_NAME) ? CLAUDE_NAME : undefined)
  if (step === undefined || known === undefined) return { text: answer }
  const tool = `${known.slice(0, -'kiki_session'.length)}${step.tool}`
  return dialect.prepare?.(body, step.tool) ?? { tool, args: step.args, listed: tools.includes(tool) }
}
