//! A database, and the processes that share it. A process is a runtime of its own, so that it can crash and be paused.

use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use core_service::nodes::RunWorkflow;
use core_service::runtime::{
    MetricsSnapshot, NoSurroundings, Report, Runtime, RuntimeConfig, StartRun, StartRunError, Started,
    Waiting,
};
use core_service::store::{Actor, DatabaseUrl, Founding, Run, Store};
use core_service::triggers::{Triggers, WorkflowCalls};
use engine::event::NodeKey;
use engine::step::NodeAttempt;
use sqlx::{Connection as _, PgConnection, SqliteConnection};
use test_support::TemporaryDirectory;
use tokio::task::JoinHandle;

use crate::probe::Probe;

/// Longer than anything takes; reaching it is a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

pub(crate) struct World {
    pub(crate) store: Store,
    pub(crate) url: DatabaseUrl,
    pub(crate) organization_id: String,
    pub(crate) probe: Arc<Probe>,
    database: Option<test_support::Database>,
    _directory: TemporaryDirectory,
}

impl World {
    pub(crate) async fn sqlite() -> Self {
        let directory = TemporaryDirectory::new("runtime").unwrap();
        let url = DatabaseUrl::Sqlite(directory.path().join("runtime.db"));
        Self::new(url, directory, None).await
    }

    pub(crate) async fn postgres(test: &str) -> Option<Self> {
        let database = test_support::postgres_or_skip(test).await?;
        let directory = TemporaryDirectory::new("runtime").unwrap();
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
        let organization_id = organization(&store).await;
        Self {
            store,
            url,
            organization_id,
            probe: Probe::new(),
            database,
            _directory: directory,
        }
    }

    /// The id of another organization.
    pub(crate) async fn other_organization(&self) -> String {
        organization(&self.store).await
    }

    pub(crate) async fn end(self) {
        self.store.close().await;
        if let Some(database) = self.database {
            database.drop_now().await.unwrap();
        }
    }

    /// Does something to the database behind everybody's back.
    pub(crate) async fn execute(&self, sql: &'static str) {
        let mut backdoor = self.backdoor().await;
        backdoor.execute(sql).await;
    }

    /// Keeps everybody else from writing runs until the guard is dropped. Reading goes on.
    pub(crate) async fn without_writes(&self) -> Backdoor {
        let mut backdoor = self.backdoor().await;
        let lock = match &self.url {
            DatabaseUrl::Sqlite(_) => "BEGIN IMMEDIATE",
            DatabaseUrl::Postgres(_) => "BEGIN; LOCK TABLE runs IN SHARE MODE",
        };
        backdoor.execute(lock).await;
        backdoor
    }

    async fn backdoor(&self) -> Backdoor {
        match &self.url {
            DatabaseUrl::Sqlite(file) => {
                let url = format!("sqlite://{}", file.display());
                Backdoor::Sqlite(SqliteConnection::connect(&url).await.unwrap())
            }
            DatabaseUrl::Postgres(url) => Backdoor::Postgres(PgConnection::connect(url).await.unwrap()),
        }
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.database.is_none()
    }

    /// A process with a short lease that puts waiting runs to sleep at once.
    pub(crate) async fn process(&self) -> Process {
        self.process_with(quick()).await
    }

    pub(crate) async fn process_with(&self, config: RuntimeConfig) -> Process {
        let tokio = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (url, calls, mut registry) = (self.url.clone(), WorkflowCalls::default(), self.probe.registry());
        registry.add_executed(RunWorkflow, Arc::new(calls.clone()));
        let started = tokio.spawn(async move {
            let (store, registry) = (Store::open(&url).await.unwrap(), Arc::new(registry));
            let runtime = Runtime::start(
                store.clone(),
                Arc::clone(&registry),
                Arc::new(NoSurroundings),
                config,
            )
            .await
            .unwrap();
            let _workers = Triggers::start(store, runtime.clone(), registry, &calls);
            runtime
        });
        let runtime = started.await.unwrap();
        Process {
            tokio: Some(tokio),
            runtime,
        }
    }

    pub(crate) async fn run(&self, run_id: &str) -> Run {
        self.store.run(&self.organization_id, run_id).await.unwrap()
    }

    /// The run once it is as wanted.
    pub(crate) async fn run_when(&self, run_id: &str, wanted: impl Fn(&Run) -> bool) -> Run {
        self.run_of_when(&self.organization_id, run_id, wanted).await
    }

    /// As `run_when`, of any organization.
    pub(crate) async fn run_of_when(
        &self,
        organization_id: &str,
        run_id: &str,
        wanted: impl Fn(&Run) -> bool,
    ) -> Run {
        let run = async || self.store.run(organization_id, run_id).await.unwrap();
        let look = async {
            loop {
                let run = run().await;
                if wanted(&run) {
                    return run;
                }
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(run) => run,
            Err(_elapsed) => panic!("the run stays {:?}", run().await),
        }
    }

    /// The run once it has ended.
    pub(crate) async fn ended(&self, run_id: &str) -> Run {
        self.run_when(run_id, |run| run.status.is_terminal()).await
    }
}

async fn organization(store: &Store) -> String {
    let founding = Founding {
        name: "Acme",
        plan_id: "unlimited",
        owner_email: "owner@example.com",
        key: None,
    };
    let founded = store.found_organization(&Actor::default(), &founding).await;
    founded.unwrap().organization_id
}

/// A connection of the test's own.
pub(crate) enum Backdoor {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Backdoor {
    async fn execute(&mut self, sql: &'static str) {
        match self {
            Self::Sqlite(connection) => sqlx::raw_sql(sql).execute(connection).await.map(drop),
            Self::Postgres(connection) => sqlx::raw_sql(sql).execute(connection).await.map(drop),
        }
        .unwrap();
    }
}

/// A short lease; waiting runs sleep at once.
pub(crate) fn quick() -> RuntimeConfig {
    RuntimeConfig {
        lease: Duration::from_millis(1_500),
        poll_interval: Duration::from_millis(50),
        keep_waiting: Duration::ZERO,
        remote_patience: PATIENCE,
        ..RuntimeConfig::default()
    }
}

pub(crate) struct Process {
    tokio: Option<tokio::runtime::Runtime>,
    pub(crate) runtime: Runtime,
}

impl Process {
    /// Begins something inside the process.
    pub(crate) fn begin<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        call: impl FnOnce(Runtime) -> F,
    ) -> JoinHandle<T> {
        self.tokio.as_ref().unwrap().spawn(call(self.runtime.clone()))
    }

    /// Does something inside the process.
    pub(crate) async fn call<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        call: impl FnOnce(Runtime) -> F,
    ) -> T {
        tokio::time::timeout(PATIENCE, self.begin(call))
            .await
            .unwrap()
            .unwrap()
    }

    pub(crate) async fn start(&self, start: StartRun) -> Result<Started, StartRunError> {
        self.call(|runtime| async move { runtime.start_run(start).await })
            .await
    }

    pub(crate) async fn report(&self, world: &World, run_id: &str) -> Report {
        let (organization_id, run_id) = (world.organization_id.clone(), run_id.to_owned());
        self.call(|runtime| async move { runtime.report(&organization_id, &run_id).await.unwrap() })
            .await
    }

    /// A node of a run in the attempt that is being made at it.
    pub(crate) async fn waiting(&self, world: &World, run_id: &str, node: i64) -> Waiting {
        let (report, key) = (self.report(world, run_id).await, NodeKey::root(node));
        let known = report.state.reached(&key);
        let asked = NodeAttempt {
            started_at_ms: known.as_ref().and_then(|known| known.started_at_ms).unwrap_or(0),
            number: known.map_or(1, |known| known.attempt),
        };
        Waiting { key, asked }
    }

    /// Waits until the process has counted so; it counts a moment after others can see what it wrote.
    pub(crate) async fn counts(&self, wanted: impl Fn(&MetricsSnapshot) -> bool) {
        let look = async {
            while !wanted(&self.runtime.metrics()) {
                tokio::time::sleep(LOOK_AGAIN_AFTER).await;
            }
        };
        if tokio::time::timeout(PATIENCE, look).await.is_err() {
            panic!("the process counts {:?}", self.runtime.metrics());
        }
    }

    /// Ends the process as `kill -9` would: nothing is said to anybody.
    pub(crate) fn crash(mut self) {
        self.tokio.take().unwrap().shutdown_background();
    }

    /// Stops the process until the guard is dropped, as a suspended machine would.
    pub(crate) fn pause(&self) -> mpsc::Sender<()> {
        let (resume, paused) = mpsc::channel();
        // The process has one thread, which this holds.
        self.tokio.as_ref().unwrap().spawn(async move {
            let _resumed = paused.recv();
        });
        resume
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(tokio) = self.tokio.take() {
            tokio.shutdown_background();
        }
    }
}
