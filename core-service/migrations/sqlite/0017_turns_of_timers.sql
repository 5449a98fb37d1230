-- Whose run a timer is of: when more is due than can go on at once, organizations take turns.
ALTER TABLE timers ADD COLUMN organization_id TEXT NOT NULL DEFAULT '';

UPDATE timers SET organization_id =
    COALESCE((SELECT r.organization_id FROM runs r WHERE r.id = timers.run_id), '');

CREATE INDEX timers_by_organization ON timers (organization_id, due_at, run_id);
