-- Custom functions: JavaScript that expressions call by name.

CREATE TABLE functions (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT COLLATE "C" REFERENCES teams (id),
    folder_id       TEXT COLLATE "C" REFERENCES folders (id) ON DELETE SET NULL,
    name            TEXT COLLATE "C" NOT NULL,
    -- Name and description in lower case, for searching.
    search_text     TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C",
    code            BYTEA NOT NULL,
    -- JSON: the parameters in order.
    parameters      BYTEA NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

CREATE INDEX functions_newest ON functions (organization_id, id);
CREATE INDEX functions_by_folder ON functions (folder_id);
-- Expressions find a function by its name: the team's first, then the organization's.
CREATE UNIQUE INDEX functions_by_name ON functions (organization_id, COALESCE(team_id, ''), name);
