-- What the owner was asked, and the answer. A question is open while its operation is `waiting_approval`.
CREATE TABLE approvals (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  operation_id TEXT NOT NULL UNIQUE REFERENCES operations (id) ON DELETE CASCADE,
  -- Which decision asked, and why: JSON.
  decision TEXT NOT NULL,
  -- What approving the same kind for the session would cover: JSON list of kinds.
  kinds TEXT NOT NULL,
  policy_version INTEGER NOT NULL,
  asked_at INTEGER NOT NULL,
  expires_at INTEGER,
  answer TEXT CHECK (answer IN ('approved', 'denied')),
  scope TEXT CHECK (scope IN ('once', 'session', 'always')),
  message TEXT,
  -- `owner`, or `expiry`.
  answered_by TEXT,
  answered_at INTEGER
) STRICT;

-- "The same kind for this session" (GU-33).
CREATE TABLE session_approvals (
  session_ref TEXT NOT NULL REFERENCES sessions (ref) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  definition TEXT NOT NULL,
  policy_version INTEGER NOT NULL,
  approved_at INTEGER NOT NULL,
  PRIMARY KEY (session_ref, kind)
) STRICT, WITHOUT ROWID;

-- Rules that the owner made by answering "always"; those of config.toml stand beside them.
CREATE TABLE owner_rules (
  id INTEGER PRIMARY KEY,
  decision TEXT NOT NULL CHECK (decision IN ('allow', 'ask', 'deny')),
  pattern TEXT NOT NULL,
  connection_id TEXT,
  workspace TEXT,
  made_at INTEGER NOT NULL
) STRICT;

-- What the owner found out about an operation whose outcome is unknown (OP-16).
CREATE TABLE operation_notes (
  operation_id TEXT PRIMARY KEY REFERENCES operations (id) ON DELETE CASCADE,
  found TEXT NOT NULL CHECK (found IN ('happened', 'did_not_happen')),
  note TEXT NOT NULL,
  noted_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
