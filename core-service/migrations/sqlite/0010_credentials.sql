-- Credentials: stored access to the services that nodes talk to.

CREATE TABLE credentials (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT REFERENCES teams (id),
    folder_id       TEXT REFERENCES folders (id) ON DELETE SET NULL,
    name            TEXT NOT NULL,
    app_id          TEXT NOT NULL,
    -- One of the app's ways to connect.
    connection_id   TEXT NOT NULL,
    status          TEXT NOT NULL,
    -- JSON of the connection's fields, sealed; empty once the credential is deleted.
    data            BLOB NOT NULL,
    -- What the link is found by under which a person finishes it.
    link_hash       BLOB UNIQUE,
    link_expires_at BIGINT,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);

CREATE INDEX credentials_newest ON credentials (organization_id, id) WHERE deleted_at IS NULL;
CREATE INDEX credentials_by_folder ON credentials (folder_id);
