-- Custom functions: JavaScript that expressions call by name.

CREATE TABLE functions (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT REFERENCES teams (id),
    folder_id       TEXT REFERENCES folders (id) ON DELETE SET NULL,
    name            TEXT NOT NULL,
    -- Name and description in lower case, for searching.
    search_text     TEXT NOT NULL,
    description     TEXT,
    code            BLOB NOT NULL,
    -- JSON: the parameters in order.
    parameters      BLOB NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

CREATE INDEX functions_newest ON functions (organization_id, id);
CREATE INDEX functions_by_folder ON functions (folder_id);
-- Expressions find a function by its name: the team's first, then the organization's.
CREATE UNIQUE INDEX functions_by_name ON functions (organization_id, COALESCE(team_id, ''), name);
