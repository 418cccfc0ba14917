-- Git worktrees that Kiki made for sessions (SE-10).
CREATE TABLE worktrees (
  session_ref TEXT PRIMARY KEY REFERENCES sessions (ref) ON DELETE CASCADE,
  repository TEXT NOT NULL,
  branch TEXT NOT NULL,
  path TEXT NOT NULL,
  -- The commit that Kiki made the branch from; null where the branch was there before.
  base TEXT,
  made_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
