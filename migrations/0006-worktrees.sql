-- Git worktrees that Kiki made for sessions (SE-10). A row stands from before the worktree is made until it is removed; one that
-- holds work of its own stays, with its row, when its sessions have ended.
CREATE TABLE worktrees (
  -- The sessions' workspace.
  path TEXT PRIMARY KEY,
  repository TEXT NOT NULL,
  branch TEXT NOT NULL,
  -- Git's own folder of the repository, and within it that of the worktree; NULL until it is made.
  common_dir TEXT,
  git_dir TEXT,
  -- The commit that it began at.
  base TEXT,
  made_branch INTEGER NOT NULL CHECK (made_branch IN (0, 1)),
  -- JSON list: filters that its files would need and that were not run.
  filters_off TEXT NOT NULL DEFAULT '[]',
  created_at INTEGER NOT NULL
) STRICT;
