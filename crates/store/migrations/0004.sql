-- Tries of a run before the one that is kept, with why it was tried again. Of earlier runs only their number is known.
CREATE TABLE attempts (
    run_id     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place      INTEGER NOT NULL,                   -- from 0
    started_at TEXT NOT NULL,                      -- RFC 3339, UTC
    took_ms    INTEGER NOT NULL,
    reason     TEXT NOT NULL,                      -- a code
    detail     TEXT NOT NULL,
    figures    TEXT NOT NULL,                      -- JSON: values by metric, which count nowhere
    PRIMARY KEY (run_id, place)
) STRICT, WITHOUT ROWID;
