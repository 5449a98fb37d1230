//! A measurement, not a test: run starts a second through the commit path.
//!
//! `cargo test --release -p contract --test store throughput -- --ignored --nocapture --test-threads 1`

use std::time::Instant;

use core_service::store::{Driver, NewRun, RunBatch, RunStatus, Segment};

use crate::fixture::{Fixture, summary};

const RUNS: usize = 20_000;

async fn run_starts_a_second(fixture: &Fixture) {
    let lease = fixture.lease().await;
    for size in [64, 256, 64] {
        let batches: Vec<RunBatch> = (0..RUNS / size)
            .map(|_| RunBatch {
                creates: (0..size).map(|_| finished(fixture)).collect(),
                ..RunBatch::default()
            })
            .collect();
        let started = Instant::now();
        for batch in &batches {
            fixture.store.commit_runs(&lease, batch).await.unwrap();
        }
        let rate = (batches.len() * size) as f64 / started.elapsed().as_secs_f64();
        println!("{rate:>9.0} run starts a second in batches of {size}, two rows each");
    }
}

/// A four-node run that ended within its first commit.
fn finished(fixture: &Fixture) -> NewRun {
    NewRun {
        summary: summary(RunStatus::Succeeded, Driver::This),
        start_input: vec![b'x'; 200],
        segments: vec![Segment {
            attempt: 1,
            seq: 0,
            events: vec![b'x'; 600],
        }],
        ..fixture.run("wf_00000000000000000000000000")
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn sqlite() {
    run_starts_a_second(&Fixture::sqlite().await).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn postgres() {
    if let Some(fixture) = Fixture::postgres("throughput").await {
        run_starts_a_second(&fixture).await;
        fixture.end().await;
    }
}
