-- Whether a disk was mounted just at a session's folder when it was made: without it, what stands there is another folder (SE-09).
ALTER TABLE sessions ADD COLUMN mounted INTEGER NOT NULL DEFAULT 0 CHECK (mounted IN (0, 1));
