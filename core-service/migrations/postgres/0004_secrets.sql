-- Secrets and what holds them: wrapped keys, variables; and who is invited into an organization.

-- Keys wrapped by the master key: one of the service itself, and one for each organization that has secrets.
CREATE TABLE wrapped_keys (
    -- The organization, or the name of the service's own secret.
    id             TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    -- The version of the master key that wrapped it.
    master_version BIGINT NOT NULL,
    wrapped        BYTEA NOT NULL
);

CREATE TABLE variables (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    -- Null for the organization's.
    team_id         TEXT COLLATE "C" REFERENCES teams (id),
    name            TEXT COLLATE "C" NOT NULL,
    is_secret       BOOLEAN NOT NULL,
    -- Text in UTF-8; sealed when it is secret.
    value           BYTEA NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL,
    deleted_at      BIGINT
);

CREATE UNIQUE INDEX variables_by_name ON variables (organization_id, COALESCE(team_id, ''), name)
    WHERE deleted_at IS NULL;

CREATE TABLE invitations (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    email           TEXT COLLATE "C" NOT NULL,
    -- The email in lower case, for comparing.
    email_key       TEXT COLLATE "C" NOT NULL,
    role            TEXT COLLATE "C" NOT NULL,
    team_id         TEXT COLLATE "C" REFERENCES teams (id),
    inviter_id      TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    -- One that has expired may still be called pending.
    status          TEXT COLLATE "C" NOT NULL,
    -- What the link's token is found by; the token itself is sealed.
    token_hash      BYTEA NOT NULL UNIQUE,
    token           BYTEA NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT NOT NULL
);

CREATE INDEX invitations_by_organization ON invitations (organization_id, id);
CREATE UNIQUE INDEX invitations_pending ON invitations (organization_id, email_key) WHERE status = 'pending';

CREATE TABLE team_members (
    team_id TEXT COLLATE "C" NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    user_id TEXT COLLATE "C" NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    PRIMARY KEY (team_id, user_id)
);
