-- Tokens that connections fetch, and the consents of people by which some of them come.

CREATE TABLE tokens (
    credential_id TEXT PRIMARY KEY NOT NULL REFERENCES credentials (id) ON DELETE CASCADE,
    -- Rises with every token; 0 before the first.
    revision      BIGINT NOT NULL,
    -- JSON of the token and what came with it, sealed; null before the first.
    data          BLOB,
    -- When it has to be renewed; null for never.
    renew_at      BIGINT,
    -- Rises with everybody who may fetch the next one, alone until then.
    lease         BIGINT NOT NULL,
    lease_until   BIGINT,
    -- How often fetching has failed, and how and why the last time.
    failures      BIGINT NOT NULL,
    failure       TEXT,
    reason        TEXT
);

CREATE TABLE consents (
    -- What the state is found by that goes to the service and comes back.
    state_hash    BLOB PRIMARY KEY NOT NULL,
    credential_id TEXT NOT NULL REFERENCES credentials (id) ON DELETE CASCADE,
    -- The verifier of the code, the link that it began with and what was typed there, sealed.
    data          BLOB NOT NULL,
    created_at    BIGINT NOT NULL,
    expires_at    BIGINT NOT NULL,
    -- A state is used once.
    used          BOOLEAN NOT NULL
);

CREATE INDEX consents_by_credential ON consents (credential_id, created_at);
CREATE INDEX consents_by_expiry ON consents (expires_at);
