//! What a long history costs: the server stops, so many ended runs are written straight into its database, and starts,
//! lists and reports are measured again.
//!
//! Half of the runs are of the workflow that is asked for; the others of ten of its organization and of ten of others. Of
//! ten, nine succeeded and one failed.

use std::time::Duration;

use core_service::store::{DatabaseUrl, Driver, NewRun, RunBatch, RunStatus, RunSummary, Segment, Store};
use core_service::{clock, id};
use sqlx::{Connection as _, PgConnection};
use test_support::{Server, text, wire, workload};

use crate::Options;
use crate::generator::{self, Calls};

/// Runs that are started before any are written, so that pages are full.
const FIRST: usize = 500;
/// An empty history: no more than it takes to fill each list's page, of failed runs, too.
const EMPTY: usize = 2_000;
/// Runs of one transaction.
const CHUNK: usize = 1_000;
/// Reports asked for in turn: of runs from all over the history.
const REPORTS: usize = 500;

/// A line for each size of history and kind of call.
pub(crate) async fn measure(server: &mut Server, options: &Options) {
    let mut history = History::prepare(server).await;
    println!(
        "{:>10} {:>10} {:>26} {:>11} {:>11} {:>8} {:>8} {:>8}",
        "runs", "MiB", "call", "connections", "answered/s", "p50 ms", "p99 ms", "max ms"
    );
    history.grow(server, EMPTY).await;
    history.measure(server, options).await;
    for &runs in &options.runs {
        history.grow(server, runs).await;
        history.measure(server, options).await;
    }
}

struct History {
    key: String,
    hook: String,
    workflow: String,
    /// The page after the first, as it was in the beginning.
    deep: String,
    /// A run like all others.
    pattern: NewRun,
    /// Runs from all over the history.
    samples: Vec<String>,
    runs: usize,
}

impl History {
    async fn prepare(server: &mut Server) -> Self {
        let made = server.admin().await.organization("History", None).await;
        let api = server.api(Some(&made.api_key));
        let workflow = api.workflow_with("History", workload::graph()).await;
        api.go_live(&workflow).await;
        let hook = api.mint(&workflow, 1).await;
        let body: serde_json::Value = serde_json::from_str(&workload::body()).unwrap();
        for _ in 0..FIRST {
            assert_eq!(api.call_hook(&hook, &[], body.clone()).await.status, 202);
        }
        let (page, deep) = api.get(format!("/runs?workflowId={workflow}")).await.page();
        let run_id = text(&page[0]["id"]);
        let ended = api.ended(&run_id).await;
        assert_eq!(ended["status"], "succeeded");
        let store = open(server).await;
        let run = store.run(&made.organization_id, &run_id).await.unwrap();
        let segments = store.load_segments(&run_id, None).await.unwrap();
        store.close().await;
        Self {
            key: made.api_key,
            hook,
            workflow,
            deep: deep.unwrap(),
            pattern: pattern(run, segments),
            samples: vec![run_id],
            runs: FIRST,
        }
    }

    /// Adds ended runs until there are so many.
    async fn grow(&mut self, server: &mut Server, runs: usize) {
        server.terminate().await;
        let store = open(server).await;
        let lease = store.register_process(600_000).await.unwrap();
        let others: Vec<(String, String)> = (0..20)
            .map(|number| {
                let organization_id = match number % 2 {
                    0 => self.pattern.organization_id.clone(),
                    _ => id::new(id::Kind::Organization),
                };
                (organization_id, id::new(id::Kind::Workflow))
            })
            .collect();
        let every = (runs / REPORTS).max(1);
        while self.runs < runs {
            let numbers = self.runs..runs.min(self.runs + CHUNK);
            let creates = numbers.clone().map(|number| self.run(number, &others));
            let batch = RunBatch {
                creates: creates.collect(),
                ..RunBatch::default()
            };
            let asked_for = batch.creates.iter().zip(numbers.clone());
            let asked_for =
                asked_for.filter(|(run, number)| number % every == 0 && run.workflow_id == self.workflow);
            self.samples.extend(asked_for.map(|(run, _)| run.id.clone()));
            store.commit_runs(&lease, &batch).await.unwrap();
            store.renew_lease(&lease).await.unwrap();
            self.runs = numbers.end;
        }
        store.retire_process(&lease).await.unwrap();
        store.close().await;
        if let Some(url) = server.database_url() {
            // As autovacuum would have, had they come one by one.
            let mut connection = PgConnection::connect(url).await.unwrap();
            sqlx::raw_sql("VACUUM ANALYZE")
                .execute(&mut connection)
                .await
                .unwrap();
        }
        server.restart().await;
    }

    fn run(&self, number: usize, others: &[(String, String)]) -> NewRun {
        let mut run = self.pattern.clone();
        run.id = id::new(id::Kind::Run);
        run.created_at = clock::now_ms();
        run.summary.finished_at = Some(run.created_at);
        if (number / 2).is_multiple_of(10) {
            run.summary.status = RunStatus::Failed;
            run.summary.error = Some("STOPPED: by the benchmark".to_owned());
        }
        if number % 2 == 1 {
            let (organization_id, workflow_id) = &others[number / 2 % others.len()];
            run.organization_id.clone_from(organization_id);
            run.workflow_id.clone_from(workflow_id);
        }
        run
    }

    async fn measure(&self, server: &Server, options: &Options) {
        let authorization = format!("Bearer {}", self.key);
        let get = |path: &str| {
            let path = format!("/api/v1{path}");
            wire::request("GET", &path, &[("authorization", &authorization)], "")
        };
        let list = format!("/runs?workflowId={}", self.workflow);
        let reports = self.samples.iter().map(|run_id| get(&format!("/runs/{run_id}")));
        let post = wire::request("POST", &format!("/hooks/{}", self.hook), &[], &workload::body());
        for (name, requests, success) in [
            ("report", reports.collect(), 200),
            ("list", vec![get(&list)], 200),
            (
                "list, the end",
                vec![get(&format!("{list}&cursor={}", self.deep))],
                200,
            ),
            ("list, failed", vec![get(&format!("{list}&q=failed"))], 200),
            (
                "list, running (none)",
                vec![get(&format!("{list}&q=running"))],
                200,
            ),
            (
                "list, one id",
                vec![get(&format!("{list}&q={}", self.samples[0]))],
                200,
            ),
            ("start (webhook)", vec![post], 202),
        ] {
            let calls = Calls {
                requests,
                success,
                every: None,
            };
            let address = server.rest_address();
            generator::run(address, calls.clone(), 1, Duration::from_secs(1)).await;
            for &connections in &options.connections {
                let load = generator::run(address, calls.clone(), connections, options.time()).await;
                assert_eq!(load.refused, 0, "{name}");
                println!(
                    "{:>10} {:>10} {name:>26} {connections:>11} {:>11.0} {:>8.2} {:>8.2} {:>8.2}",
                    self.runs,
                    size_mib(server),
                    load.answered() as f64 / options.time().as_secs_f64(),
                    load.percentile_ms(50.0),
                    load.percentile_ms(99.0),
                    load.percentile_ms(100.0),
                );
            }
        }
    }
}

fn pattern(run: core_service::store::Run, segments: Vec<Segment>) -> NewRun {
    NewRun {
        id: run.id,
        organization_id: run.organization_id,
        workflow_id: run.workflow_id.unwrap_or_default(),
        version_no: run.version_no,
        graph_hash: run.graph_hash,
        start_input: run.start_input,
        created_by: run.created_by,
        created_at: run.created_at,
        summary: RunSummary {
            status: run.status,
            attempt_number: run.attempt_number,
            finished_at: run.finished_at,
            error: run.error,
            credits_used: run.credits_used,
            driver: Driver::Nobody,
        },
        metered: run.metered,
        idempotency: None,
        tick: None,
        parent_run_id: None,
        segments,
        timers: Vec::new(),
        ending: None,
        activity: Vec::new(),
    }
}

fn database(server: &Server) -> DatabaseUrl {
    match server.database_url() {
        Some(url) => url.parse().unwrap(),
        None => DatabaseUrl::in_directory(&server.data_dir()),
    }
}

async fn open(server: &Server) -> Store {
    Store::open(&database(server)).await.unwrap()
}

/// Size of the SQLite file.
fn size_mib(server: &Server) -> String {
    match database(server) {
        DatabaseUrl::Sqlite(file) => (file.metadata().unwrap().len() >> 20).to_string(),
        DatabaseUrl::Postgres(_) => "-".to_owned(),
    }
}
