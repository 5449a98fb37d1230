-- Triggers of deployed versions that ask a service again and again: what each has dealt with, and when it asks next.

CREATE TABLE polls (
    workflow_id TEXT COLLATE "C" NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    node_id     BIGINT NOT NULL,
    -- Tells what it asks; another question begins anew.
    question    BYTEA NOT NULL,
    -- Rises with every change.
    revision    BIGINT NOT NULL,
    -- Digests of the items it has dealt with; null until it has asked once.
    known       BYTEA,
    -- When it asks next; null while its workflow is not active.
    wake_at     BIGINT,
    -- What became of the last time.
    outcome     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (workflow_id, node_id)
);

CREATE INDEX polls_to_wake ON polls (wake_at) WHERE wake_at IS NOT NULL;
