/** What file tools may touch: the session's workspace and the extra directories that the owner granted (PA-01). */
export interface Workspace {
  /** The workspace's real path, made canonical once when the session was bound (GU-52). Relative paths start here. */
  root: string
  /** Every root, `root` first; real paths. */
  roots: readonly string[]
  /** Kiki's home, refused to every tool (PA-03); a real path. */
  home: string
}
