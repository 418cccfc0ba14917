import { existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** One keyed call and the count of its effects, as seen in the world and not in Kiki's own records. */
export interface Deed {
  kind: Kind
  key: string
  tool: string
  args: Record<string, unknown>
  /** Effects seen so far. */
  effects: number
  /** The answer that a client got, once it is over. */
  answer?: { operationId: string; status: string; content: unknown }
}

type FileKind = Exclude<Kind, 'text'>
export const KINDS = ['edit', 'multi', 'create', 'overwrite', 'delete', 'move', 'folder', 'text'] as const
export type Kind = (typeof KINDS)[number]

interface Trap {
  tool: string
  args(path: string): Record<string, unknown>
  prepare(file: string): void
  /** Effects since the last look. The world is then set so that one more would show. */
  look(file: string): number
}

const EDIT = { old_string: '.', new_string: '!.' }
const read = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8') : undefined)

function torn(file: string, found: string | undefined): never {
  throw new Error(`${file} holds what nobody wrote: ${JSON.stringify(found)}`)
}

/** A counter file: every run leaves one more mark, and the marks that were counted are taken out. */
const counter = {
  prepare: (file: string) => writeFileSync(file, '.'),
  look: (file: string) => {
    const found = read(file)
    if (found === undefined || !/^!*\.$/.test(found)) torn(file, found)
    if (found.length > 1) writeFileSync(file, '.')
    return found.length - 1
  },
}

const written = (before: string | undefined) => ({
  tool: 'Write',
  args: (path: string) => ({ path, content: `written ${path}` }),
  prepare: (file: string) => before !== undefined && writeFileSync(file, before),
  look: (file: string) => {
    const found = read(file)
    if (found === before || found === 'counted') return 0
    if (!found?.startsWith('written ') || !file.endsWith(found.slice('written '.length))) torn(file, found)
    writeFileSync(file, 'counted')
    return 1
  },
})

const TRAPS: Record<FileKind, Trap> = {
  edit: { tool: 'Edit', args: (path) => ({ path, ...EDIT }), ...counter },
  multi: { tool: 'MultiEdit', args: (path) => ({ path, edits: [EDIT] }), ...counter },
  create: { ...written(undefined), prepare: () => undefined },
  overwrite: written('before'),
  delete: {
    tool: 'Delete',
    args: (path) => ({ path }),
    prepare: (file) => writeFileSync(file, 'x'),
    look: (file) => {
      if (existsSync(file)) return 0
      writeFileSync(file, 'x')
      return 1
    },
  },
  move: {
    tool: 'Move',
    args: (path) => ({ from: path, to: `${path}.moved` }),
    prepare: (file) => writeFileSync(file, 'x'),
    look: (file) => {
      const [from, to] = [read(file), read(`${file}.moved`)]
      if (from === 'x' && to === undefined) return 0
      if (to !== 'x') torn(file, to)
      rmSync(`${file}.moved`)
      writeFileSync(file, 'x')
      return 1
    },
  },
  folder: {
    tool: 'MakeDirectory',
    args: (path) => ({ path }),
    prepare: () => undefined,
    look: (file) => {
      if (!existsSync(file)) return 0
      rmdirSync(file)
      return 1
    },
  },
}

/** Sets a call up in the workspace. */
export function prepare(workspace: string, kind: Kind, key: string): Deed {
  if (kind === 'text') {
    const args = { text: 'saved', title: key, kind: 'note' }
    return { kind, key, tool: 'kiki_save_text', args, effects: 0 }
  }
  mkdirSync(workspace, { recursive: true })
  const trap = TRAPS[kind]
  trap.prepare(join(workspace, key))
  return { kind, key, tool: trap.tool, args: trap.args(key), effects: 0 }
}

/** Counts anew. Only while the host is down, or once the call is known to be over. `texts` are the saved ones by title. */
export function count(workspace: string, deed: Deed, texts?: ReadonlyMap<string, number>): number {
  if (deed.kind !== 'text') deed.effects += TRAPS[deed.kind].look(join(workspace, deed.key))
  else if (texts !== undefined) deed.effects = texts.get(deed.key) ?? 0
  return deed.effects
}
