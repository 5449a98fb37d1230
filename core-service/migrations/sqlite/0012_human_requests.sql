-- What runs ask people: a row while a human_input node waits. The commits of the run write and delete it, so it is there
-- exactly as long as the journal says that the node waits.
CREATE TABLE human_requests (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL,
    workflow_id     TEXT NOT NULL,
    run_id          TEXT NOT NULL,
    run_attempt     BIGINT NOT NULL,
    node_id         BIGINT NOT NULL,
    -- Empty outside of scopes.
    iteration       TEXT NOT NULL,
    -- Title, message, fields and assignees, as JSON.
    question        BLOB NOT NULL,
    -- The assignees in lower case, a line feed around each, so that one of them can be looked for.
    assignees       TEXT NOT NULL,
    due_at          BIGINT,
    created_at      BIGINT NOT NULL
);

CREATE UNIQUE INDEX human_requests_of_run ON human_requests (run_id, node_id, iteration);
CREATE INDEX human_requests_of_organization ON human_requests (organization_id, id);

-- What came of a signal, for whoever sent it; null until its run's driver has acted upon it.
ALTER TABLE signals ADD COLUMN outcome BLOB;
