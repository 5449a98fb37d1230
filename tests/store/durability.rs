//! What was committed is there after a crash, and what was not is not.

use core_service::store::{Actor, DatabaseUrl, Store, StoreError};
use sqlx::{Connection as _, PgConnection};

use crate::fixture::{Fixture, segment};

on_both_databases!(
    committed_rows_survive_a_reopen,
    an_abandoned_write_leaves_no_trace,
    several_nodes_may_start_at_once,
);

/// As when its answer is lost on the way.
#[tokio::test(flavor = "multi_thread")]
async fn a_statement_without_an_answer_is_given_up() {
    let Some(fixture) = Fixture::postgres("a statement without an answer").await else {
        return;
    };
    let DatabaseUrl::Postgres(url) = &fixture.url else {
        panic!("not PostgreSQL");
    };
    let mut holder = PgConnection::connect(url).await.unwrap();
    let lock = "BEGIN; LOCK TABLE timers IN ACCESS EXCLUSIVE MODE";
    sqlx::raw_sql(lock).execute(&mut holder).await.unwrap();
    let looked = fixture.store.next_due().await;
    assert!(matches!(looked, Err(StoreError::Unavailable(_))), "{looked:?}");
    holder.close().await.unwrap();
    assert_eq!(fixture.store.next_due().await.unwrap(), None);
    fixture.end().await;
}

async fn committed_rows_survive_a_reopen(fixture: &Fixture) {
    let lease = fixture.lease().await;
    let run = fixture.run("wf_1");
    let run_id = run.id.clone();
    fixture.start(&lease, vec![run]).await;
    // The files as they are at this instant are what a crash leaves behind.
    let url = if let DatabaseUrl::Sqlite(path) = &fixture.url {
        let crashed = fixture.directory.path().join("crashed.db");
        for suffix in ["", "-wal"] {
            let name = |path: &std::path::Path| format!("{}{suffix}", path.display());
            std::fs::copy(name(path), name(&crashed)).unwrap();
        }
        DatabaseUrl::Sqlite(crashed)
    } else {
        fixture.url.clone()
    };
    let reopened = Store::open(&url).await.unwrap();
    assert_eq!(
        reopened.run(fixture.organization_id(), &run_id).await.unwrap().id,
        run_id
    );
    assert_eq!(reopened.load_segments(&run_id, None).await.unwrap(), [segment(0)]);
    reopened.close().await;
}

async fn an_abandoned_write_leaves_no_trace(fixture: &Fixture) {
    // Dropped at different instants, some of them inside the transaction.
    for polls in 0..40 {
        let (store, organization) = (fixture.store.clone(), fixture.organization_id().to_owned());
        let task = tokio::spawn(async move {
            store
                .create_folder(&Actor::default(), &organization, "abandoned", None)
                .await
                .unwrap();
        });
        for _ in 0..polls {
            tokio::task::yield_now().await;
        }
        task.abort();
        let _aborted = task.await;
    }
    let folder = fixture
        .store
        .create_folder(&Actor::default(), fixture.organization_id(), "kept", None)
        .await
        .unwrap();
    let folders = fixture
        .store
        .list_folders(fixture.organization_id())
        .await
        .unwrap();
    assert!(folders.iter().any(|one| one.id == folder.id));
    let filter = core_service::store::ActivityFilter {
        target_type: Some("folder".to_owned()),
        ..core_service::store::ActivityFilter::default()
    };
    let trail = fixture
        .store
        .list_activity(fixture.organization_id(), &filter, None, 100)
        .await
        .unwrap();
    assert_eq!(
        trail.len(),
        folders.len(),
        "each folder with its entry, or neither"
    );
}

async fn several_nodes_may_start_at_once(fixture: &Fixture) {
    let nodes: Vec<_> = (0..4)
        .map(|_| {
            let url = fixture.url.clone();
            tokio::spawn(async move { Store::open(&url).await.unwrap() })
        })
        .collect();
    for node in nodes {
        let node = node.await.unwrap();
        node.ping().await.unwrap();
        assert_eq!(node.count_organizations().await.unwrap(), 1);
        node.close().await;
    }
}

#[tokio::test]
async fn an_address_that_cannot_work_says_why() {
    let missing = DatabaseUrl::Sqlite("/nonexistent/directory/store.db".into());
    let error = Store::open(&missing).await.err().unwrap();
    assert!(
        matches!(&error, StoreError::Setup(text) if text.contains("directory")),
        "{error:?}"
    );
    let nobody: DatabaseUrl = "postgres://nobody@127.0.0.1:1/none".parse().unwrap();
    let error = Store::open(&nobody).await.err().unwrap();
    assert!(error.is_temporary(), "{error:?}");
    for wrong in ["", "mysql://x", "sqlite:"] {
        assert!(wrong.parse::<DatabaseUrl>().is_err(), "{wrong}");
    }
}
