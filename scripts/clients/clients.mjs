// How each client is pointed at the stand-in and run without a person. What Kiki prints is applied unchanged before this.
import { join } from 'node:path'

/** Where a client's program lies under the folder that the packages were installed in (README.md). */
const program = {
  codex: ['node_modules/.bin/codex'],
  claude: ['node_modules/@anthropic-ai/claude-code-linux-x64/claude'],
  gemini: ['node_modules/.bin/gemini'],
  opencode: ['node_modules/opencode-linux-x64/bin/opencode'],
}

/**
 * @typedef {object} Client
 * @property {(url: string) => Record<string, string>} env
 * @property {(url: string, allow: boolean) => string[]} run arguments of one turn; `allow` grants Kiki's tools in the client
 * @property {string[]} list arguments that show its MCP servers
 * @property {(url: string, allow: boolean) => object} [settings] merged into its JSON settings beside what Kiki prints
 */

/** @type {Record<string, Client>} */
export const CLIENTS = {
  codex: {
    env: () => ({ STAND_IN_KEY: 'none' }),
    list: ['mcp', 'list'],
    run: (url, allow) => [
      'exec',
      '--skip-git-repo-check',
      '--json',
      ...['-c', 'model="stand-in"', '-c', 'model_provider="standin"'],
      '-c',
      `model_providers.standin={name="stand-in",base_url="${url}/v1",wire_api="responses",env_key="STAND_IN_KEY"}`,
      ...(allow ? ['-c', 'mcp_servers.kiki.default_tools_approval_mode="approve"'] : []),
    ],
  },
  'claude-code': {
    env: (url) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
    list: ['mcp', 'list'],
    run: (_url, allow) => [
      ...['-p', '--output-format', 'stream-json', '--verbose'],
      ...(allow ? ['--allowedTools=mcp__kiki'] : []),
    ],
  },
  gemini: {
    env: (url) => ({ GOOGLE_GEMINI_BASE_URL: url, GEMINI_API_KEY: 'none', GEMINI_CLI_TRUST_WORKSPACE: 'true' }),
    list: ['mcp', 'list'],
    run: (_url, allow) => [
      ...['--skip-trust', '--output-format', 'stream-json', '--model', 'gemini-2.5-flash'],
      ...(allow ? ['--approval-mode', 'yolo'] : []),
      '--prompt',
    ],
    settings: () => ({
      security: { auth: { selectedType: 'gemini-api-key' } },
      privacy: { usageStatisticsEnabled: false },
      general: { enableAutoUpdate: false },
    }),
  },
  opencode: {
    env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1' }),
    list: ['mcp', 'list'],
    run: () => ['run', '--model', 'standin/model', '--format', 'json'],
    settings: (url) => ({
      provider: {
        standin: {
          npm: '@ai-sdk/openai-compatible',
          options: { baseURL: `${url}/v1`, apiKey: 'none' },
          models: { model: { name: 'stand-in', tool_call: true } },
        },
      },
    }),
  },
}

/** @param {string} folder */
export function programOf(client, folder) {
  return join(folder, ...program[client === 'claude-code' ? 'claude' : client])
}
