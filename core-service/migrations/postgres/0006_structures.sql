-- Structures: named shapes that values are checked against.

CREATE TABLE structures (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT COLLATE "C" REFERENCES teams (id),
    folder_id       TEXT COLLATE "C" REFERENCES folders (id) ON DELETE SET NULL,
    name            TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C",
    -- JSON: the fields in order.
    fields          BYTEA NOT NULL,
    field_count     BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

CREATE INDEX structures_newest ON structures (organization_id, id);
CREATE INDEX structures_by_folder ON structures (folder_id);
