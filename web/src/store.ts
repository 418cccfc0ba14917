/** One value that components follow by `useSyncExternalStore`. */
export function createStore<T>(first: T) {
  let value = first
  const listeners = new Set<() => void>()
  return {
    get: (): T => value,
    set(next: T): void {
      value = next
      for (const listener of listeners) listener()
    },
    subscribe(onChange: () => void): () => void {
      listeners.add(onChange)
      return () => listeners.delete(onChange)
    },
  }
}
