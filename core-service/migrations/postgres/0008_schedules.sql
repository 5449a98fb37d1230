-- Where each workflow's recurrence stands, and which runs it has started.

CREATE TABLE schedules (
    workflow_id TEXT COLLATE "C" PRIMARY KEY NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    -- Rises when the workflow's recurrence changes or starts or stops acting.
    revision    BIGINT NOT NULL,
    -- When the recurrence was set: intervals count from it.
    anchor      BIGINT NOT NULL,
    -- Instants up to this one are dealt with.
    after_at    BIGINT NOT NULL,
    -- The next instant; null while nobody has computed it, and when there is none.
    due_at      BIGINT,
    -- When somebody has to look at it; null when nobody ever has to.
    wake_at     BIGINT,
    -- What became of the last instant.
    outcome     TEXT COLLATE "C" NOT NULL
);

CREATE INDEX schedules_to_wake ON schedules (wake_at) WHERE wake_at IS NOT NULL;

-- Recurrences that were set before schedules acted do so from now on.
INSERT INTO schedules (workflow_id, revision, anchor, after_at, due_at, wake_at, outcome)
SELECT id, 1, updated_at, CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT), NULL,
    CASE WHEN active AND version_no IS NOT NULL THEN 0 END, 'none'
FROM workflows WHERE recurrence IS NOT NULL;

DROP INDEX workflows_scheduled;

-- The instant a schedule started the run for; null for all other runs.
ALTER TABLE runs ADD COLUMN scheduled_at BIGINT;

CREATE UNIQUE INDEX runs_one_an_instant ON runs (workflow_id, scheduled_at) WHERE scheduled_at IS NOT NULL;
CREATE INDEX runs_scheduled_unfinished ON runs (workflow_id) WHERE scheduled_at IS NOT NULL AND finished_at IS NULL;
