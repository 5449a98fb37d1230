-- What executions of nodes wrote into this database and what that gave, so that no execution writes twice. No foreign
-- keys: the run's row is written by others.

CREATE TABLE effects (
    -- The idempotency key of the execution.
    key          TEXT PRIMARY KEY NOT NULL,
    run_id       TEXT NOT NULL,
    -- When the node began in its run.
    started_at   BIGINT NOT NULL,
    -- Null when the request holds what must not be kept, not even as a hash.
    request_hash BLOB,
    result       BLOB NOT NULL,
    created_at   BIGINT NOT NULL
);

CREATE INDEX effects_by_age ON effects (created_at);
