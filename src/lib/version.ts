import { readFileSync } from 'node:fs'

/** The versions of Node.js that `package.json` asks for. */
export function readEngines(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { engines: { node: string } }).engines.node
}

/** The version in `package.json`, which the package holds beside `dist/`. */
export function readVersion(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8')
  return (JSON.parse(text) as { version: string }).version
}
