-- Databases: tables whose columns their owners choose, their rows, and the index of those columns that have one.

CREATE TABLE databases (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT COLLATE "C" REFERENCES teams (id),
    name            TEXT COLLATE "C" NOT NULL,
    description     TEXT COLLATE "C",
    -- JSON: the columns in order.
    columns         BYTEA NOT NULL,
    row_count       BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);

CREATE INDEX databases_newest ON databases (organization_id, id) WHERE deleted_at IS NULL;

CREATE TABLE database_rows (
    id          TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    database_id TEXT COLLATE "C" NOT NULL REFERENCES databases (id),
    -- JSON: the values by column id.
    data        BYTEA NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

CREATE INDEX database_rows_by_database ON database_rows (database_id, id);

-- One entry for each row and indexed column. The bytes of the key sort as the values do; a missing value's are none.
CREATE TABLE database_row_keys (
    row_id      TEXT COLLATE "C" NOT NULL,
    column_id   TEXT COLLATE "C" NOT NULL,
    database_id TEXT COLLATE "C" NOT NULL,
    sort_key    BYTEA NOT NULL,
    PRIMARY KEY (row_id, column_id)
);

CREATE INDEX database_row_keys_by_key ON database_row_keys (database_id, column_id, sort_key, row_id);
