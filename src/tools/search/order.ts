/** Sorts as `rg --sort path` does: name by name, by bytes, so that both ways of searching page alike. */
export function sortByPath<T extends { name: string }>(items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, key: Buffer.from(item.name.replaceAll('/', '\0'), 'utf8') }))
    .sort((a, b) => Buffer.compare(a.key, b.key))
    .map(({ item }) => item)
}
