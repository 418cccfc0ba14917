export type Environment = Readonly<Record<string, string | undefined>>

/** The process's environment. Everything outside `config/` is handed what it needs of it. */
export function environment(): Environment {
  return process.env
}

/**
 * Chooses React's form for users, before it is loaded: the other one, for React's own developers, is what it takes by itself, and
 * that one keeps a measurement of every frame for ever.
 */
export function choosePlainReact(): void {
  process.env.NODE_ENV = 'production'
}
