import { type Dirent, readdirSync, readFileSync } from 'node:fs'
import { extname, join, posix, relative, sep } from 'node:path'
import type { MiddlewareHandler } from 'hono'
import { systemCode } from '../lib/errors.js'

interface StaticFile {
  body: Uint8Array<ArrayBuffer>
  type: string
  immutable: boolean
}

/** URL path → file. A path that is not a key does not exist, so there is no traversal to guard against. */
export type StaticFiles = ReadonlyMap<string, StaticFile>

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
}

/** Vite's name for a file whose content is in its name. */
const HASHED = /^\/assets\/[^/]+-[\w-]{8}\.\w+$/

/** Reads the built page into memory, once. Links are not followed. Empty where the page was not built. */
export function readStaticFiles(folder: string): StaticFiles {
  const files = new Map<string, StaticFile>()
  for (const entry of list(folder)) {
    if (!entry.isFile()) continue
    const file = join(entry.parentPath, entry.name)
    const path = posix.join('/', relative(folder, file).split(sep).join('/'))
    files.set(path, {
      body: new Uint8Array(readFileSync(file)),
      type: TYPES[extname(entry.name)] ?? 'application/octet-stream',
      immutable: HASHED.test(path),
    })
  }
  return files
}

function list(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return []
    throw error
  }
}

/** Serves the page; anything else is left to what follows. Mount after the routes of the API. */
export function staticFiles(files: StaticFiles): MiddlewareHandler {
  return async (c, next) => {
    if (c.req.method !== 'GET' && c.req.method !== 'HEAD') return next()
    if (c.req.path === '/' && !files.has('/index.html')) {
      return c.text('The settings page is not built. Run `npm run build` and start Kiki again.\n', 503)
    }
    const file = files.get(c.req.path === '/' ? '/index.html' : c.req.path)
    if (file === undefined) return next()
    return c.body(file.body, 200, {
      'Content-Type': file.type,
      'Cache-Control': file.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    })
  }
}
