-- Databases: tables whose columns their owners choose, their rows, and the index of those columns that have one.

CREATE TABLE databases (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT REFERENCES teams (id),
    name            TEXT NOT NULL,
    description     TEXT,
    -- JSON: the columns in order.
    columns         BLOB NOT NULL,
    row_count       BIGINT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);

CREATE INDEX databases_newest ON databases (organization_id, id) WHERE deleted_at IS NULL;

CREATE TABLE database_rows (
    id          TEXT PRIMARY KEY NOT NULL,
    database_id TEXT NOT NULL REFERENCES databases (id),
    -- JSON: the values by column id.
    data        BLOB NOT NULL,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL
);

CREATE INDEX database_rows_by_database ON database_rows (database_id, id);

-- One entry for each row and indexed column. The bytes of the key sort as the values do; a missing value's are none.
CREATE TABLE database_row_keys (
    row_id      TEXT NOT NULL,
    column_id   TEXT NOT NULL,
    database_id TEXT NOT NULL,
    sort_key    BLOB NOT NULL,
    PRIMARY KEY (row_id, column_id)
) WITHOUT ROWID;

CREATE INDEX database_row_keys_by_key ON database_row_keys (database_id, column_id, sort_key, row_id);
