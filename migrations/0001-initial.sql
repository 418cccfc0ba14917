-- Times are milliseconds since 1970. JSON columns are written and read by the folder that owns the table.

CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE boots (
  id TEXT PRIMARY KEY,
  pid INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER
) STRICT;

-- One client's grant.
CREATE TABLE connections (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('local', 'remote', 'token')),
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'revoked')),
  policy_version INTEGER NOT NULL DEFAULT 1,
  grant_json TEXT NOT NULL,
  expires_at INTEGER,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_used_at INTEGER
) STRICT;

-- Static bearer tokens of `token` connections; only the SHA-256 is kept.
CREATE TABLE connection_tokens (
  hash TEXT PRIMARY KEY,
  connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
  created_at INTEGER NOT NULL,
  revoked_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
  seq INTEGER PRIMARY KEY,
  ref TEXT NOT NULL UNIQUE,
  connection_id TEXT NOT NULL REFERENCES connections (id),
  title TEXT NOT NULL,
  workspace TEXT NOT NULL,
  mode TEXT NOT NULL,
  profile TEXT,
  status TEXT NOT NULL DEFAULT 'open' CHECK (status IN ('open', 'closed')),
  created_at INTEGER NOT NULL,
  last_activity_at INTEGER NOT NULL,
  closed_at INTEGER
) STRICT;
CREATE INDEX sessions_by_connection ON sessions (connection_id, status, last_activity_at DESC);

-- Who is attached to which session: a chat, a bridge, an MCP session, or the whole grant.
CREATE TABLE attachments (
  connection_id TEXT NOT NULL REFERENCES connections (id) ON DELETE CASCADE,
  holder TEXT NOT NULL,
  session_ref TEXT NOT NULL REFERENCES sessions (ref) ON DELETE CASCADE,
  attached_at INTEGER NOT NULL,
  seen_at INTEGER NOT NULL,
  PRIMARY KEY (connection_id, holder, session_ref)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachments_by_session ON attachments (session_ref);

-- One recorded tool call.
CREATE TABLE operations (
  seq INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  connection_id TEXT NOT NULL,
  session_ref TEXT NOT NULL,
  idempotency_key TEXT,
  parent_id TEXT,
  client TEXT,
  tool TEXT NOT NULL,
  effect TEXT NOT NULL,
  arguments TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  policy_version INTEGER NOT NULL,
  decision TEXT NOT NULL,
  approval_id TEXT,
  status TEXT NOT NULL CHECK (status IN
    ('accepted', 'waiting_approval', 'running', 'completed', 'failed', 'cancelled', 'outcome_unknown')),
  accepted_at INTEGER NOT NULL,
  started_at INTEGER,
  ended_at INTEGER,
  boot_id TEXT,
  attempt INTEGER NOT NULL DEFAULT 0,
  error_code TEXT,
  effects_possible INTEGER NOT NULL DEFAULT 0,
  result TEXT,
  result_chars INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX operations_by_key ON operations (connection_id, session_ref, idempotency_key)
  WHERE idempotency_key IS NOT NULL;
CREATE INDEX operations_by_session ON operations (session_ref, seq);
CREATE INDEX operations_unfinished ON operations (status, seq)
  WHERE status IN ('accepted', 'waiting_approval', 'running');
CREATE INDEX operations_by_status ON operations (status, seq);
CREATE INDEX operations_by_age ON operations (accepted_at);

-- What is over, is over (GU-04).
CREATE TRIGGER operations_terminal BEFORE UPDATE ON operations
  WHEN OLD.status IN ('completed', 'failed', 'cancelled', 'outcome_unknown')
BEGIN
  SELECT RAISE(ABORT, 'a finished operation never changes');
END;

-- Large parts of saved results: text as UTF-16LE in chunks of 65,536 code units, media as raw bytes.
CREATE TABLE result_parts (
  operation_id TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
  part INTEGER NOT NULL,
  chunk INTEGER NOT NULL,
  body BLOB NOT NULL,
  PRIMARY KEY (operation_id, part, chunk)
) STRICT;

-- Which files an operation changed; the earlier content is in the home's `changes` folder.
CREATE TABLE changes (
  operation_id TEXT NOT NULL REFERENCES operations (id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  session_ref TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (operation_id, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX changes_by_session ON changes (session_ref);

-- Keys of operations that retention removed: a late retry is told so instead of running again (OP-07).
CREATE TABLE key_tombstones (
  connection_id TEXT NOT NULL,
  session_ref TEXT NOT NULL,
  key_hash TEXT NOT NULL,
  expired_at INTEGER NOT NULL,
  PRIMARY KEY (connection_id, session_ref, key_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX key_tombstones_by_age ON key_tombstones (expired_at);

CREATE TABLE saved_texts (
  id TEXT PRIMARY KEY,
  connection_id TEXT NOT NULL,
  session_ref TEXT NOT NULL REFERENCES sessions (ref) ON DELETE CASCADE,
  operation_id TEXT,
  kind TEXT NOT NULL CHECK (kind IN ('note', 'user_excerpt', 'assistant_excerpt', 'handoff')),
  title TEXT NOT NULL,
  body TEXT NOT NULL,
  related TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX saved_texts_by_session ON saved_texts (session_ref, created_at);
