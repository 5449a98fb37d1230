-- Workflows, their frozen graphs and versions, what orders them, and the addresses that start them.

CREATE TABLE folders (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    parent_id       TEXT REFERENCES folders (id),
    name            TEXT NOT NULL,
    name_key        TEXT NOT NULL,
    created_at      BIGINT NOT NULL
);

CREATE INDEX folders_by_organization ON folders (organization_id, name_key, id);
CREATE INDEX folders_by_parent ON folders (parent_id);

CREATE TABLE tags (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name            TEXT NOT NULL,
    name_key        TEXT NOT NULL,
    color           TEXT NOT NULL,
    created_at      BIGINT NOT NULL,
    updated_at      BIGINT NOT NULL
);

CREATE INDEX tags_by_organization ON tags (organization_id, name_key, id);

CREATE TABLE workflows (
    id                   TEXT PRIMARY KEY NOT NULL,
    organization_id      TEXT NOT NULL REFERENCES organizations (id),
    team_id              TEXT NOT NULL REFERENCES teams (id),
    folder_id            TEXT REFERENCES folders (id),
    name                 TEXT NOT NULL,
    -- The name in lower case, for sorting; name and description in lower case, for searching.
    name_key             TEXT NOT NULL,
    search_text          TEXT NOT NULL,
    description          TEXT,
    active               BOOLEAN NOT NULL,
    draft                BLOB NOT NULL,
    draft_hash           TEXT NOT NULL,
    node_count           BIGINT NOT NULL,
    recurrence           BLOB,
    execution_timeout_ms BIGINT,
    -- The deployed version; all null when there is none.
    version_no           BIGINT,
    content_hash         TEXT,
    deployed_at          BIGINT,
    deployed_draft_hash  TEXT,
    created_at           BIGINT NOT NULL,
    updated_at           BIGINT NOT NULL
);

CREATE INDEX workflows_by_update ON workflows (organization_id, updated_at, id);
CREATE INDEX workflows_by_creation ON workflows (organization_id, created_at, id);
CREATE INDEX workflows_by_name ON workflows (organization_id, name_key, id);
CREATE INDEX workflows_by_folder ON workflows (folder_id);
CREATE INDEX workflows_scheduled ON workflows (id) WHERE recurrence IS NOT NULL AND active;

CREATE TABLE workflow_tags (
    workflow_id TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    tag_id      TEXT NOT NULL REFERENCES tags (id) ON DELETE CASCADE,
    PRIMARY KEY (workflow_id, tag_id)
);

CREATE INDEX workflow_tags_by_tag ON workflow_tags (tag_id);

-- Graphs that never change again, found by their content: deployed versions and the drafts that runs started from.
CREATE TABLE graphs (
    organization_id TEXT NOT NULL,
    content_hash    TEXT NOT NULL,
    graph           BLOB NOT NULL,
    PRIMARY KEY (organization_id, content_hash)
);

CREATE TABLE versions (
    workflow_id     TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    version_no      BIGINT NOT NULL,
    organization_id TEXT NOT NULL,
    content_hash    TEXT NOT NULL,
    deployed_at     BIGINT NOT NULL,
    PRIMARY KEY (workflow_id, version_no)
);

CREATE TABLE webhooks (
    id              TEXT PRIMARY KEY NOT NULL,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    -- Null once the workflow is deleted.
    workflow_id     TEXT REFERENCES workflows (id) ON DELETE SET NULL,
    node_id         BIGINT,
    node_name       TEXT NOT NULL,
    node_name_key   TEXT NOT NULL,
    method          TEXT NOT NULL,
    enabled         BOOLEAN NOT NULL,
    created_at      BIGINT NOT NULL,
    UNIQUE (workflow_id, node_id)
);

CREATE INDEX webhooks_newest ON webhooks (organization_id, created_at, id);
