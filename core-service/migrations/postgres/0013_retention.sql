-- How long runs and the feed are kept, and what has to be known to delete a run with everything that hangs on it.

-- Days a run is kept after its end, ended runs kept of each organization, days an entry of the feed is kept; null is for
-- good.
ALTER TABLE plans ADD COLUMN retention_days BIGINT;
ALTER TABLE plans ADD COLUMN retention_runs BIGINT;
ALTER TABLE plans ADD COLUMN activity_days BIGINT;

-- Whose journal refers to which payload. A payload goes with the last run that does.
CREATE TABLE payload_uses (
    run_id          TEXT COLLATE "C" NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL,
    content_hash    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, content_hash)
);

CREATE INDEX payload_uses_of_payload ON payload_uses (organization_id, content_hash);

-- All uses of the payload are known: it was stored after they were kept.
ALTER TABLE payloads ADD COLUMN uses_known BOOLEAN NOT NULL DEFAULT FALSE;

-- Runs that are deleted already, but not yet what hung on them: a journal may be too long to go all at once.
CREATE TABLE run_remains (
    run_id TEXT COLLATE "C" PRIMARY KEY NOT NULL
);

-- Ended runs by the time of their end: what is too old, or too many.
CREATE INDEX runs_ended ON runs (organization_id, finished_at) WHERE finished_at IS NOT NULL;
-- Lists of runs that did not simply end well, which are few among millions that did.
CREATE INDEX runs_not_succeeded ON runs (workflow_id, status, id) WHERE status <> 'succeeded';

-- By default a table is vacuumed when a fifth of it is dead: of ten million runs, two million, all at once. These are
-- vacuumed little and often instead, and their statistics follow.
ALTER TABLE runs SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE segments SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02);
ALTER TABLE activity SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02);
-- These stay small and turn over all the time: whoever looks for what is due must not wade through what was.
ALTER TABLE timers SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
ALTER TABLE signals SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE endings SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
ALTER TABLE processes SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);
ALTER TABLE idempotency_keys SET (autovacuum_vacuum_scale_factor = 0.01);
