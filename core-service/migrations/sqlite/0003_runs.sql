-- The durable side of the engine. These tables have no foreign keys: a batch of many runs must not fail because a
-- workflow was deleted meanwhile, and the fence on `processes` keeps their order.

-- A running server. It holds one lease, judged by this database's clock; its runs belong to it.
CREATE TABLE processes (
    id         TEXT PRIMARY KEY NOT NULL,
    epoch      BIGINT NOT NULL,
    alive      BOOLEAN NOT NULL,
    expires_at BIGINT NOT NULL,
    started_at BIGINT NOT NULL
);

CREATE TABLE runs (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL,
    -- The workflow may have been deleted since.
    workflow_id     TEXT NOT NULL,
    status          TEXT NOT NULL,
    attempt_number  BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    finished_at     BIGINT,
    error           BLOB,
    credits_used    BIGINT NOT NULL,
    version_no      BIGINT,
    graph_hash      TEXT NOT NULL,
    start_input     BLOB NOT NULL,
    created_by      TEXT,
    -- Who drives it; null when nobody does.
    process_id      TEXT,
    -- Nobody needs to drive it before a timer or a signal wakes it.
    parked          BOOLEAN NOT NULL,
    -- How often a process was lost while driving it.
    crashes         BIGINT NOT NULL,
    -- Its organization's credits are counted; it still holds one.
    metered         BOOLEAN NOT NULL,
    credit_held     BOOLEAN NOT NULL,
    -- Signals that its driver has not acted upon.
    pending_signals BIGINT NOT NULL
);

CREATE INDEX runs_of_workflow ON runs (workflow_id, id);
CREATE INDEX runs_driven ON runs (process_id) WHERE process_id IS NOT NULL AND finished_at IS NULL;
CREATE INDEX runs_ready ON runs (id) WHERE process_id IS NULL AND finished_at IS NULL AND NOT parked;

-- The journal: the events of a run's attempt, in pieces.
CREATE TABLE segments (
    run_id  TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    seq     BIGINT NOT NULL,
    events  BLOB NOT NULL,
    PRIMARY KEY (run_id, attempt, seq)
) WITHOUT ROWID;

-- Node outputs too large for the journal, found by their content.
CREATE TABLE payloads (
    organization_id TEXT NOT NULL,
    content_hash    TEXT NOT NULL,
    payload         BLOB NOT NULL,
    PRIMARY KEY (organization_id, content_hash)
);

CREATE TABLE idempotency_keys (
    organization_id TEXT NOT NULL,
    workflow_id     TEXT NOT NULL,
    key             TEXT NOT NULL,
    run_id          TEXT NOT NULL,
    body_hash       BLOB NOT NULL,
    expires_at      BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    PRIMARY KEY (organization_id, workflow_id, key)
) WITHOUT ROWID;

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

CREATE TABLE timers (
    run_id TEXT NOT NULL,
    key    TEXT NOT NULL,
    due_at BIGINT NOT NULL,
    kind   TEXT NOT NULL,
    PRIMARY KEY (run_id, key)
) WITHOUT ROWID;

CREATE INDEX timers_by_due ON timers (due_at, run_id);

-- What somebody asks of a run that another process drives, until that process has done it.
CREATE TABLE signals (
    id         TEXT PRIMARY KEY NOT NULL,
    run_id     TEXT NOT NULL,
    kind       TEXT NOT NULL,
    payload    BLOB NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX signals_by_run ON signals (run_id, id);
