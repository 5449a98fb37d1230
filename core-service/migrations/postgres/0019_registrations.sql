-- Triggers of apps that services call: the URL of each, and what its service has been told of it.

CREATE TABLE registrations (
    -- What the URL ends with; who knows it can call.
    id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
    organization_id TEXT COLLATE "C" NOT NULL REFERENCES organizations (id),
    -- No reference: the service is told that it is over when the workflow is there no more.
    workflow_id     TEXT COLLATE "C" NOT NULL,
    workflow_name   TEXT NOT NULL,
    node_id         BIGINT NOT NULL,
    -- Tells what the service is asked to call for; something else is another registration.
    question        BYTEA NOT NULL,
    -- JSON of the app, the module, the parameters and the credential.
    source          BYTEA NOT NULL,
    -- What the service signs its calls with, sealed.
    secret          BYTEA NOT NULL,
    -- JSON of what is to be remembered of the service's answer, sealed; null when there is nothing.
    kept            BYTEA,
    -- Whether it is of the deployed version.
    bound           BOOLEAN NOT NULL,
    -- Whether the service should call: it is bound, and its workflow is active.
    wanted          BOOLEAN NOT NULL,
    -- What the service has been told, or is to be told next.
    status          TEXT COLLATE "C" NOT NULL,
    -- Rises with every claim, and when it is over.
    revision        BIGINT NOT NULL,
    -- Counts what the service is told; the same one is told by the same idempotency key.
    round           BIGINT NOT NULL,
    -- How often telling has failed since it last succeeded or was begun.
    failures        BIGINT NOT NULL,
    -- When the service is told next; null while there is nothing to tell.
    wake_at         BIGINT
);

CREATE UNIQUE INDEX registrations_of_triggers ON registrations (workflow_id, node_id) WHERE bound;
CREATE INDEX registrations_of_workflows ON registrations (workflow_id);
CREATE INDEX registrations_to_wake ON registrations (wake_at) WHERE wake_at IS NOT NULL;
