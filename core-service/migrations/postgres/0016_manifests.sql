-- Apps that were added to those that come with the service: each version of a manifest, as it was given.

CREATE TABLE manifests (
    -- Null for all organizations.
    organization_id TEXT COLLATE "C" REFERENCES organizations (id),
    app_id          TEXT COLLATE "C" NOT NULL,
    -- From 1; rises with every change of the content.
    version         BIGINT NOT NULL,
    -- SHA-256 of the content, in hexadecimal: what frozen graphs name.
    digest          TEXT COLLATE "C" NOT NULL,
    content         BYTEA NOT NULL,
    -- Null for the operator.
    added_by        TEXT COLLATE "C",
    added_at        BIGINT NOT NULL
);

CREATE UNIQUE INDEX manifests_by_version ON manifests (COALESCE(organization_id, ''), app_id, version);
CREATE INDEX manifests_by_digest ON manifests (digest);
