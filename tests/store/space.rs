//! SQLite gives space back and keeps its log short.

use core_service::store::{DatabaseUrl, Driver, NewRun, RunBatch, RunStatus, Segment};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::fixture::{Fixture, summary};

const MIB: u64 = 1 << 20;

async fn connection(fixture: &Fixture) -> SqliteConnection {
    let DatabaseUrl::Sqlite(file) = &fixture.url else {
        panic!("not SQLite");
    };
    SqliteConnectOptions::new()
        .filename(file)
        .connect()
        .await
        .unwrap()
}

/// Writes ended runs with so many MiB of journal.
async fn fill(fixture: &Fixture, mib: u64) {
    let lease = fixture.lease().await;
    for _ in 0..mib {
        let run = NewRun {
            summary: summary(RunStatus::Succeeded, Driver::Nobody),
            segments: vec![Segment {
                attempt: 1,
                seq: 0,
                events: vec![7; MIB as usize],
            }],
            ..fixture.run("wf_1")
        };
        let batch = RunBatch {
            creates: vec![run],
            ..RunBatch::default()
        };
        fixture.commit(&lease, batch).await;
    }
}

fn size(fixture: &Fixture, suffix: &str) -> u64 {
    let path = fixture.directory.path().join(format!("store.db{suffix}"));
    path.metadata().unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_gets_smaller() {
    let fixture = Fixture::sqlite().await;
    let store = &fixture.store;
    fill(&fixture, 24).await;
    assert_eq!(
        store.give_back_space(1_000).await.unwrap().deleted,
        0,
        "all is in use"
    );
    let organization = fixture.organization_id();
    store.delete_runs(organization, i64::MAX, 100).await.unwrap();
    while store.delete_remains(100).await.unwrap().deleted > 0 {}
    let given_back = store.give_back_space(1_000).await.unwrap().deleted;
    assert_eq!(given_back, 1_000, "as many pages as were asked for");
    while store.give_back_space(1_000).await.unwrap().deleted > 0 {}
    sqlx::raw_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        .execute(&mut connection(&fixture).await)
        .await
        .unwrap();
    assert!(size(&fixture, "") < 4 * MIB, "{}", size(&fixture, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_is_begun_anew_when_nobody_reads_it() {
    let fixture = Fixture::sqlite().await;
    assert_eq!(fixture.store.shorten_log().await.unwrap(), None, "it is short");
    let mut reader = connection(&fixture).await;
    sqlx::raw_sql("BEGIN; SELECT COUNT(*) FROM runs")
        .execute(&mut reader)
        .await
        .unwrap();
    fill(&fixture, 70).await;
    assert!(size(&fixture, "-wal") > 64 * MIB);
    assert_eq!(
        fixture.store.shorten_log().await.unwrap(),
        None,
        "it is not waited for"
    );
    reader.close().await.unwrap();
    assert!(fixture.store.shorten_log().await.unwrap().is_some());
    assert_eq!(size(&fixture, "-wal"), 0);
    fill(&fixture, 1).await;
}
