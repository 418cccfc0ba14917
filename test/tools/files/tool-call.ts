import type { Tool, ToolContext, ToolResult } from '../../../src/tools/tool.js'

/** Runs a tool as the gate does: its arguments go through its schema. */
export async function call(tool: Tool, context: ToolContext, args: Record<string, unknown>): Promise<ToolResult> {
  return tool.run(context, tool.input.parse(args))
}

export function textOf(result: ToolResult): string {
  return result.content.map((block) => (block.type === 'text' ? block.text : '')).join('\n')
}
