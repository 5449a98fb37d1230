-- Structures: named shapes that values are checked against.

CREATE TABLE structures (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT REFERENCES teams (id),
    folder_id       TEXT REFERENCES folders (id) ON DELETE SET NULL,
    name            TEXT NOT NULL,
    description     TEXT,
    -- JSON: the fields in order.
    fields          BLOB NOT NULL,
    field_count     BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

CREATE INDEX structures_newest ON structures (organization_id, id);
CREATE INDEX structures_by_folder ON structures (folder_id);
