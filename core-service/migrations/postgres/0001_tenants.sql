-- Plans, organizations and who belongs to them; the trail of what they did.

CREATE TABLE plans (
    id                 TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    api_access         BOOLEAN NOT NULL,
    active             BOOLEAN NOT NULL,
    custom_functions   BOOLEAN NOT NULL,
    structures_created BIGINT,
    seats              BIGINT,
    credits            BIGINT,
    read_rpm           BIGINT,
    write_rpm          BIGINT
);

INSERT INTO plans (id, api_access, active, custom_functions) VALUES ('unlimited', TRUE, TRUE, TRUE);

CREATE TABLE organizations (
    id             TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    name           TEXT COLLATE "C" NOT NULL,
    plan_id        TEXT COLLATE "C" NOT NULL REFERENCES plans (id),
    -- What is left; null is unlimited. May fall below zero: a run in flight finishes, whatever it costs.
    credits        BIGINT,
    -- Credits that runs under way hold until they settle their first or end.
    credits_held   BIGINT NOT NULL DEFAULT 0,
    billing_status TEXT COLLATE "C" NOT NULL,
    created_at     BIGINT NOT NULL
);

CREATE TABLE users (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    email           TEXT COLLATE "C" NOT NULL,
    -- The email in lower case, for comparing.
    email_key       TEXT COLLATE "C" NOT NULL,
    name            TEXT COLLATE "C",
    role            TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    UNIQUE (organization_id, email_key)
);

CREATE INDEX users_by_organization ON users (organization_id, id);

CREATE TABLE teams (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    name            TEXT COLLATE "C" NOT NULL,
    name_key        TEXT COLLATE "C" NOT NULL,
    is_default      BOOLEAN NOT NULL,
    created_at      BIGINT NOT NULL
);

CREATE INDEX teams_by_organization ON teams (organization_id, name_key, id);
CREATE UNIQUE INDEX teams_one_default ON teams (organization_id) WHERE is_default;

CREATE TABLE api_keys (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    user_id         TEXT COLLATE "C" NOT NULL REFERENCES users (id),
    hash            BYTEA NOT NULL UNIQUE,
    -- The scopes, separated by spaces.
    scopes          TEXT COLLATE "C" NOT NULL,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT,
    revoked_at      BIGINT
);

CREATE TABLE settings (
    key   TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    value BYTEA NOT NULL
);

CREATE TABLE activity (
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    ts              BIGINT NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    action          TEXT COLLATE "C" NOT NULL,
    label           TEXT COLLATE "C" NOT NULL,
    target_type     TEXT COLLATE "C" NOT NULL,
    target_id       TEXT COLLATE "C" NOT NULL,
    actor_user_id   TEXT COLLATE "C",
    metadata        BYTEA NOT NULL
);

CREATE INDEX activity_newest ON activity (organization_id, ts, id);
CREATE INDEX activity_by_target ON activity (organization_id, target_type, target_id, ts, id);
