import { basename, dirname, join } from 'node:path'
import type { Found } from './found.js'

/** The tree as it would be after steps that have not been carried out yet. */
export interface VirtualTree {
  at(path: string): Found | undefined
  /** What is there really. */
  onDisk(path: string): Found | undefined
  /** Puts something at a path, or takes it away. */
  set(path: string, found: Found | undefined): void
  /** Moves what is at `from`, with everything below it, to `to`. */
  move(from: string, to: string): void
  /** Whether nothing would be in a folder. */
  isEmpty(path: string): boolean
  /** A path at which this very file would be, if one is known. */
  nameOf(found: Found): string | undefined
}

interface Move {
  time: number
  from: string
  to: string
}

/**
 * A view over the real tree; nothing is changed. Names of one file (hard links) are one object, so that a change by one
 * name shows at the others.
 */
export function createVirtualTree(real: {
  find(path: string): Found | undefined
  namesIn(path: string): string[]
}): VirtualTree {
  const disk = new Map<string, Found | undefined>()
  const files = new Map<string, Found>()
  const sets = new Map<string, { time: number; found: Found | undefined }[]>()
  const moves: Move[] = []
  const known = new Map<string, Set<string>>()
  let now = 0

  function onDisk(path: string): Found | undefined {
    if (disk.has(path)) return disk.get(path)
    let found = real.find(path)
    if (found !== undefined) {
      const same = found.type === 'file' && found.links > 1 ? files.get(found.identity) : undefined
      found = same ?? found
      files.set(found.identity, found)
    }
    disk.set(path, found)
    return found
  }

  /** The last move before a time that this path has to do with. */
  function moveOf(path: string, before: number): Move | undefined {
    return moves.findLast((move) => move.time < before && (isWithin(path, move.to) || isWithin(path, move.from)))
  }

  /** The last thing put at a path before a time, or at a folder above it: below that is only what was put there later. */
  function setOf(path: string, before: number) {
    let last: { path: string; time: number; found: Found | undefined } | undefined
    for (let name = path; ; name = dirname(name)) {
      const set = sets.get(name)?.findLast((one) => one.time < before)
      if (set !== undefined && set.time > (last?.time ?? 0)) last = { path: name, ...set }
      if (name === dirname(name)) return last
    }
  }

  function at(path: string): Found | undefined {
    for (let [name, time] = [path, now + 1]; ; ) {
      const set = setOf(name, time)
      const move = moveOf(name, time)
      if (set !== undefined && (move === undefined || set.time > move.time))
        return set.path === name ? set.found : undefined
      if (move === undefined) return onDisk(name)
      if (!isWithin(name, move.to)) return undefined
      name = move.from + name.slice(move.to.length)
      time = move.time
    }
  }

  function namesBelow(path: string): Set<string> {
    const names = new Set<string>()
    for (let [folder, time] = [path, now + 1]; ; ) {
      for (const name of known.get(folder) ?? []) names.add(name)
      const move = moveOf(folder, time)
      if (move === undefined) {
        for (const name of onDisk(folder)?.type === 'directory' ? real.namesIn(folder) : []) names.add(name)
        return names
      }
      if (!isWithin(folder, move.to)) return names
      folder = move.from + folder.slice(move.to.length)
      time = move.time
    }
  }

  function nameOf(found: Found): string | undefined {
    const seen = [...disk].filter(([, one]) => one === found).map(([path]) => ({ path, time: 0 }))
    const put = [...sets].flatMap(([path, list]) =>
      list.filter((one) => one.found === found).map(({ time }) => ({ path, time })),
    )
    return [...put, ...seen].map(({ path, time }) => movedOn(path, time)).find((path) => at(path) === found)
  }

  /** Where what was at a path at some time would be now. */
  function movedOn(path: string, since: number): string {
    return moves.reduce(
      (name, { time, from, to }) => (time > since && isWithin(name, from) ? to + name.slice(from.length) : name),
      path,
    )
  }

  function remember(path: string): void {
    const names = known.get(dirname(path)) ?? new Set()
    known.set(dirname(path), names.add(basename(path)))
  }

  return {
    at,
    onDisk,
    set(path, found) {
      const list = sets.get(path) ?? []
      now += 1
      list.push({ time: now, found })
      sets.set(path, list)
      remember(path)
    },
    move(from, to) {
      now += 1
      moves.push({ time: now, from, to })
      remember(to)
    },
    isEmpty: (path) => [...namesBelow(path)].every((name) => !isReal(name, path)),
    nameOf,
  }

  function isReal(name: string, folder: string): boolean {
    return name.startsWith('\0') || at(join(folder, name)) !== undefined
  }
}

function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`)
}
