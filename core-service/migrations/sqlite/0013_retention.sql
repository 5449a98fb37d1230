-- How long runs and the feed are kept, and what has to be known to delete a run with everything that hangs on it.

-- Days a run is kept after its end, ended runs kept of each organization, days an entry of the feed is kept; null is for
-- good.
ALTER TABLE plans ADD COLUMN retention_days BIGINT;
ALTER TABLE plans ADD COLUMN retention_runs BIGINT;
ALTER TABLE plans ADD COLUMN activity_days BIGINT;

-- Whose journal refers to which payload. A payload goes with the last run that does.
CREATE TABLE payload_uses (
    run_id          TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    content_hash    TEXT NOT NULL,
    PRIMARY KEY (run_id, content_hash)
) WITHOUT ROWID;

CREATE INDEX payload_uses_of_payload ON payload_uses (organization_id, content_hash);

-- All uses of the payload are known: it was stored after they were kept.
ALTER TABLE payloads ADD COLUMN uses_known BOOLEAN NOT NULL DEFAULT FALSE;

-- Runs that are deleted already, but not yet what hung on them: a journal may be too long to go all at once.
CREATE TABLE run_remains (
    run_id TEXT PRIMARY KEY NOT NULL
) WITHOUT ROWID;

-- Ended runs by the time of their end: what is too old, or too many.
CREATE INDEX runs_ended ON runs (organization_id, finished_at) WHERE finished_at IS NOT NULL;
-- Lists of runs that did not simply end well, which are few among millions that did.
CREATE INDEX runs_not_succeeded ON runs (workflow_id, status, id) WHERE status <> 'succeeded';
