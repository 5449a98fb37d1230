-- Apps that were added to those that come with the service: each version of a manifest, as it was given.

CREATE TABLE manifests (
    -- Null for all organizations.
    organization_id TEXT REFERENCES organizations (id),
    app_id          TEXT NOT NULL,
    -- From 1; rises with every change of the content.
    version         BIGINT NOT NULL,
    -- SHA-256 of the content, in hexadecimal: what frozen graphs name.
    digest          TEXT NOT NULL,
    content         BLOB NOT NULL,
    -- Null for the operator.
    added_by        TEXT,
    added_at        BIGINT NOT NULL
);

CREATE UNIQUE INDEX manifests_by_version ON manifests (COALESCE(organization_id, ''), app_id, version);
CREATE INDEX manifests_by_digest ON manifests (digest);
