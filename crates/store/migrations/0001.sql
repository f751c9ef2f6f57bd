-- The results database. Numbers are in plain columns, to be asked for in SQL; what is only ever read whole
-- (histograms, series) is a BLOB, whose encoding the crate's documentation describes.

CREATE TABLE experiments (
    id          INTEGER PRIMARY KEY AUTOINCREMENT, -- never given twice, so a note that quotes one stays true
    name        TEXT NOT NULL,
    kind        TEXT NOT NULL,                     -- measured, published, imported
    created_at  TEXT NOT NULL,                     -- RFC 3339, UTC
    planned     INTEGER NOT NULL,                  -- runs
    seed        TEXT NOT NULL,                     -- decimal: 64 bits without sign do not fit INTEGER
    is_complete INTEGER NOT NULL DEFAULT 0,
    note        TEXT,
    header      TEXT NOT NULL                      -- JSON: experiments, command, versions, machine
) STRICT;
CREATE INDEX experiments_by_name ON experiments (name);

-- The environment, in the order given.
CREATE TABLE facts (
    experiment_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    place         INTEGER NOT NULL,
    name          TEXT NOT NULL,
    value         TEXT NOT NULL,
    PRIMARY KEY (experiment_id, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE cells (
    id               INTEGER PRIMARY KEY,
    experiment_id    INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    experiment       TEXT NOT NULL,
    subject          TEXT NOT NULL,
    transport        TEXT NOT NULL,
    policy           TEXT NOT NULL,
    variant          TEXT,
    clients          INTEGER NOT NULL,
    deliveries_per_s INTEGER,
    payload_bytes    INTEGER
) STRICT;
-- NULLs would count as different from each other; no value is '' or negative.
CREATE UNIQUE INDEX cells_are_distinct ON cells (
    experiment_id, experiment, subject, transport, policy, clients,
    ifnull(variant, ''), ifnull(deliveries_per_s, -1), ifnull(payload_bytes, -1)
);

CREATE TABLE runs (
    id             INTEGER PRIMARY KEY,
    experiment_id  INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
    place          INTEGER NOT NULL,               -- in the planned order, from 1
    cell_id        INTEGER NOT NULL REFERENCES cells (id) ON DELETE CASCADE,
    repeat         INTEGER NOT NULL,               -- from 1
    seed           TEXT NOT NULL,
    started_at     TEXT NOT NULL,                  -- RFC 3339, UTC
    took_ms        INTEGER NOT NULL,
    attempts       INTEGER NOT NULL,
    counts         TEXT NOT NULL CHECK (counts IN ('yes', 'void', 'failed')),
    failure        TEXT,                           -- reason
    failure_phase  TEXT,
    document       TEXT NOT NULL,                  -- JSON: the rest of the record
    UNIQUE (experiment_id, place),
    CHECK ((counts = 'failed') = (failure IS NOT NULL))
) STRICT;
CREATE INDEX runs_by_cell ON runs (cell_id);

CREATE TABLE doubts (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place  INTEGER NOT NULL,
    code   TEXT NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (run_id, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE phases (
    run_id   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place    INTEGER NOT NULL,
    name     TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns   INTEGER NOT NULL,
    PRIMARY KEY (run_id, place)
) STRICT, WITHOUT ROWID;

CREATE TABLE figures (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    metric TEXT NOT NULL,
    value  REAL NOT NULL,
    bound  TEXT,                                   -- about, below, range, max: how a published figure is meant
    unit   TEXT,                                   -- only where the metric is none of ours
    PRIMARY KEY (run_id, metric)
) STRICT, WITHOUT ROWID;

CREATE TABLE counts (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    name   TEXT NOT NULL,
    value  INTEGER NOT NULL,
    PRIMARY KEY (run_id, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE histograms (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    name   TEXT NOT NULL,
    data   BLOB NOT NULL,                          -- HDR V2
    PRIMARY KEY (run_id, name)
) STRICT;

CREATE TABLE series (
    run_id  INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    place   INTEGER NOT NULL,
    name    TEXT NOT NULL,
    columns TEXT NOT NULL,                         -- JSON: names, in the order of the data
    rows    INTEGER NOT NULL,
    data    BLOB NOT NULL,
    PRIMARY KEY (run_id, place),
    UNIQUE (run_id, name)
) STRICT;
