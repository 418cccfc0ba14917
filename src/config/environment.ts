export type Environment = Readonly<Record<string, string | undefined>>

/** The process's environment. Everything outside `config/` is handed what it needs of it. */
export function environment(): Environment {
  return process.env
}
