-- Children of the host that may outlive it: the next one ends them (GU-05). A row goes when its child has ended.
CREATE TABLE children (
  id INTEGER PRIMARY KEY,
  pid INTEGER NOT NULL,
  start_time TEXT NOT NULL,
  -- By which all that belongs to a command is known (src/processes/members.ts).
  mark INTEGER,
  -- Empty folders that a sandbox needed in a workspace, to be removed with it: JSON list of paths.
  placeholders TEXT NOT NULL DEFAULT '[]',
  started_at INTEGER NOT NULL
) STRICT;

-- Commands that were started in the background (SH-03); what they wrote is in the home's `output` folder.
CREATE TABLE processes (
  id TEXT PRIMARY KEY,
  operation_id TEXT NOT NULL UNIQUE REFERENCES operations (id) ON DELETE CASCADE,
  connection_id TEXT NOT NULL,
  session_ref TEXT NOT NULL,
  policy_version INTEGER NOT NULL,
  command TEXT NOT NULL,
  cwd TEXT NOT NULL,
  started_at INTEGER NOT NULL,
  ended_at INTEGER,
  -- `lost`: its host died, and it was ended with it or by the next one.
  status TEXT NOT NULL CHECK (status IN ('running', 'exited', 'ended', 'lost')),
  exit_code INTEGER,
  signal TEXT
) STRICT;
CREATE INDEX processes_by_session ON processes (session_ref, started_at);
CREATE INDEX processes_running ON processes (status) WHERE status = 'running';
