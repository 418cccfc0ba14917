-- Who did what and by which rule. Entries are only ever added; `mac` ties each to the one before (src/audit/chain.ts).
CREATE TABLE audit (
  seq INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  action TEXT NOT NULL,
  connection_id TEXT,
  session_ref TEXT,
  operation_id TEXT,
  tool TEXT,
  argument_hash TEXT,
  decision TEXT,
  rule TEXT,
  status TEXT,
  error_code TEXT,
  duration_ms INTEGER,
  detail TEXT,
  mac BLOB NOT NULL
) STRICT;

CREATE TRIGGER audit_unchanged BEFORE UPDATE ON audit
BEGIN
  SELECT RAISE(ABORT, 'an audit entry never changes');
END;
CREATE TRIGGER audit_kept BEFORE DELETE ON audit
BEGIN
  SELECT RAISE(ABORT, 'an audit entry is never removed');
END;
