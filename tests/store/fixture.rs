//! A fresh database with an organization in it, and short ways to say what the cases are made of.

use core_service::store::{
    Activity, ActivityFilter, Actor, CreateOutcome, DatabaseUrl, Draft, Driver, Founded, Founding, Graph,
    IdempotencyKey, Lease, NewRun, NewWorkflow, RunBatch, RunChange, RunStatus, RunSummary, Segment, Store,
    Workflow,
};
use core_service::{clock, id};
use test_support::TemporaryDirectory;

/// A minute, in milliseconds: a lease that does not run out during a test.
pub(crate) const LONG: i64 = 60_000;
/// A lease that has run out as soon as it is given.
pub(crate) const EXPIRED: i64 = -1;

/// A fresh database, and an organization in it.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) url: DatabaseUrl,
    pub(crate) organization: Founded,
    pub(crate) directory: TemporaryDirectory,
    database: Option<test_support::Database>,
}

impl Fixture {
    pub(crate) async fn sqlite() -> Self {
        let directory = TemporaryDirectory::new("store").unwrap();
        let url = DatabaseUrl::Sqlite(directory.path().join("store.db"));
        Self::new(url, directory, None).await
    }

    /// Nothing, loudly, when there is no PostgreSQL.
    pub(crate) async fn postgres(test: &str) -> Option<Self> {
        let database = test_support::postgres_or_skip(test).await?;
        let directory = TemporaryDirectory::new("store").unwrap();
        Some(
            Self::new(
                DatabaseUrl::Postgres(database.url.clone()),
                directory,
                Some(database),
            )
            .await,
        )
    }

    async fn new(
        url: DatabaseUrl,
        directory: TemporaryDirectory,
        database: Option<test_support::Database>,
    ) -> Self {
        let store = Store::open(&url).await.unwrap();
        let organization = organization(&store).await;
        Self {
            store,
            url,
            organization,
            directory,
            database,
        }
    }

    /// Drops the database on a server.
    pub(crate) async fn end(self) {
        self.store.close().await;
        if let Some(database) = self.database {
            database.drop_now().await.unwrap();
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.database.is_none()
    }

    pub(crate) fn organization_id(&self) -> &str {
        &self.organization.organization_id
    }

    pub(crate) fn actor(&self) -> Actor {
        Actor {
            user_id: Some(self.organization.owner_user_id.clone()),
            ..Actor::default()
        }
    }

    /// What the organization's trail tells, newest first.
    pub(crate) async fn activity(&self) -> Vec<Activity> {
        let filter = ActivityFilter::default();
        let listed = self
            .store
            .list_activity(self.organization_id(), &filter, None, 1_000);
        listed.await.unwrap()
    }

    pub(crate) async fn lease(&self) -> Lease {
        self.store.register_process(LONG).await.unwrap()
    }

    pub(crate) async fn workflow(&self, name: &str) -> Workflow {
        workflow(&self.store, self.organization_id(), name).await
    }

    /// A queued run of a workflow that this process is going to drive.
    pub(crate) fn run(&self, workflow_id: &str) -> NewRun {
        NewRun {
            id: id::new(id::Kind::Run),
            organization_id: self.organization_id().to_owned(),
            workflow_id: workflow_id.to_owned(),
            version_no: None,
            graph_hash: "graph".to_owned(),
            start_input: b"{}".to_vec(),
            created_by: None,
            created_at: clock::now_ms(),
            summary: summary(RunStatus::Running, Driver::This),
            metered: false,
            idempotency: None,
            tick: None,
            parent_run_id: None,
            segments: vec![segment(0)],
            timers: Vec::new(),
            ending: None,
            activity: Vec::new(),
        }
    }

    /// Commits these runs, all of which must be new.
    pub(crate) async fn start(&self, lease: &Lease, creates: Vec<NewRun>) {
        let outcomes = self
            .commit(
                lease,
                RunBatch {
                    creates,
                    ..RunBatch::default()
                },
            )
            .await;
        assert!(
            outcomes.iter().all(|outcome| *outcome == CreateOutcome::Created),
            "{outcomes:?}"
        );
    }

    /// Commits what happened in one run.
    pub(crate) async fn change(&self, lease: &Lease, change: RunChange) {
        self.commit(
            lease,
            RunBatch {
                changes: vec![change],
                ..RunBatch::default()
            },
        )
        .await;
    }

    pub(crate) async fn commit(&self, lease: &Lease, batch: RunBatch) -> Vec<CreateOutcome> {
        self.store.commit_runs(lease, &batch).await.unwrap().creates
    }
}

pub(crate) async fn organization(store: &Store) -> Founded {
    store
        .found_organization(
            &Actor::default(),
            &Founding {
                name: "Acme",
                plan_id: "unlimited",
                owner_email: "owner@example.com",
                key: None,
            },
        )
        .await
        .unwrap()
}

pub(crate) async fn workflow(store: &Store, organization_id: &str, name: &str) -> Workflow {
    let draft = draft("empty");
    let new = NewWorkflow {
        name,
        description: None,
        team_id: None,
        folder_id: None,
        draft: &draft,
    };
    store
        .create_workflow(&Actor::default(), organization_id, &new)
        .await
        .unwrap()
}

pub(crate) fn draft(text: &str) -> Draft {
    Draft {
        graph: text.as_bytes().to_vec(),
        hash: format!("hash of {text}"),
        node_count: 1,
    }
}

pub(crate) fn graph(text: &str) -> Graph {
    Graph {
        content_hash: format!("frozen {text}"),
        bytes: text.as_bytes().to_vec(),
    }
}

/// A summary of a first attempt; a terminal one is finished now.
pub(crate) fn summary(status: RunStatus, driver: Driver) -> RunSummary {
    RunSummary {
        status,
        attempt_number: 1,
        finished_at: status.is_terminal().then(clock::now_ms),
        error: None,
        credits_used: 0,
        driver,
    }
}

pub(crate) fn segment(seq: i64) -> Segment {
    Segment {
        attempt: 1,
        seq,
        events: format!("events {seq}").into_bytes(),
    }
}

pub(crate) fn key(key: &str, body: &str) -> IdempotencyKey {
    IdempotencyKey {
        key: key.to_owned(),
        body_hash: body.as_bytes().to_vec(),
        expires_at: clock::now_ms() + LONG,
    }
}
