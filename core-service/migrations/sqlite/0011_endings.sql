-- What follows from the end of a run: other runs that wait for it, and workflows that react to its failure.

-- Ends that somebody has to be told of. Written with the end itself, deleted when all are told.
CREATE TABLE endings (
    run_id          TEXT NOT NULL,
    attempt         BIGINT NOT NULL,
    -- The place of the end in the attempt's journal: a run that is resumed ends again.
    seq             BIGINT NOT NULL,
    organization_id TEXT NOT NULL,
    notice          BLOB NOT NULL,
    -- When somebody has to look at it.
    wake_at         BIGINT NOT NULL,
    PRIMARY KEY (run_id, attempt, seq)
);

CREATE INDEX endings_to_wake ON endings (wake_at);

-- The error triggers of deployed versions.
CREATE TABLE error_triggers (
    workflow_id     TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    node_id         BIGINT NOT NULL,
    organization_id TEXT NOT NULL,
    -- The workflows it reacts to, as a JSON array; an empty one is all of the organization.
    workflow_ids    BLOB NOT NULL,
    PRIMARY KEY (workflow_id, node_id)
);

CREATE INDEX error_triggers_by_organization ON error_triggers (organization_id);

-- The run whose node waits for this one's end; null for all other runs.
ALTER TABLE runs ADD COLUMN parent_run_id TEXT;

CREATE INDEX runs_of_parent ON runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
