/** What file tools may touch: the session's workspace and the extra directories that the owner granted (PA-01). */
export interface Workspace {
  /** The workspace's real path, made canonical once when the session was bound (GU-52). Relative paths start here. */
  root: string
  /** Every root, `root` first; real paths. */
  roots: readonly string[]
  /** Kiki's home, refused to every tool (PA-03); a real path. */
  home: string
}

/** Resolves and checks a folder that a session is to be bound to; returns its real path. */
export declare function bindWorkspace(path: string, home: string): string

/** The workspace of a session at the moment of a call. @throws KikiError `session_unavailable` when the folder is gone or replaced (SE-09). */
export declare function openWorkspace(binding: { root: string; dirs: readonly string[]; home: string }): Workspace
