//! A SQLite database is copied while it is in use.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use core_service::store::{DatabaseUrl, RunStatus, Store, StoreError, back_up};
use tokio::sync::watch;

use crate::fixture::Fixture;

/// What was committed before the copy began is in it, whatever is committed meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_committed_is_in_the_copy() {
    let fixture = Fixture::sqlite().await;
    let lease = fixture.lease().await;
    let (committed, mut seen) = watch::channel(Vec::<String>::new());
    let (stop, stopped) = watch::channel(false);
    let (database, target) = (file(&fixture), fixture.directory.path().join("copy.db"));
    let writes = async {
        while !*stopped.borrow() {
            let run = fixture.run("wf_1");
            let id = run.id.clone();
            fixture.start(&lease, vec![run]).await;
            committed.send_modify(|ids| ids.push(id));
        }
    };
    let copies = async {
        seen.wait_for(|ids| ids.len() >= 100).await.unwrap();
        let before = seen.borrow().clone();
        let bytes = back_up(&database, &target, |_| {}).await.unwrap();
        stop.send_replace(true);
        (before, bytes)
    };
    let ((), (before, bytes)) = tokio::join!(writes, copies);

    let metadata = target.metadata().unwrap();
    assert_eq!(metadata.len(), bytes);
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    let left: Vec<_> = std::fs::read_dir(fixture.directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("partial"))
        .collect();
    assert_eq!(left, [""; 0]);
    let copy = Store::open(&DatabaseUrl::Sqlite(target)).await.unwrap();
    for id in before {
        let run = copy.run(fixture.organization_id(), &id).await.unwrap();
        assert_eq!(run.status, RunStatus::Running);
        assert_eq!(copy.load_segments(&id, None).await.unwrap().len(), 1);
    }
    copy.close().await;
}

#[tokio::test]
async fn files_that_cannot_be_are_told() {
    let fixture = Fixture::sqlite().await;
    let directory = fixture.directory.path();
    let taken = directory.join("taken");
    std::fs::write(&taken, "mine").unwrap();
    for (database, target, says) in [
        (file(&fixture), taken.clone(), "exists already"),
        (file(&fixture), directory.join("no/such/copy"), "No such file"),
        (directory.join("nothing.db"), directory.join("copy"), "nothing.db"),
    ] {
        let refused = back_up(&database, &target, |_| {}).await.unwrap_err();
        assert!(matches!(refused, StoreError::Setup(_)), "{refused:?}");
        assert!(refused.to_string().contains(says), "{refused}");
        assert!(!Path::new(&directory.join("copy")).exists());
    }
    assert_eq!(std::fs::read_to_string(taken).unwrap(), "mine");
}

fn file(fixture: &Fixture) -> std::path::PathBuf {
    match &fixture.url {
        DatabaseUrl::Sqlite(file) => file.clone(),
        DatabaseUrl::Postgres(_) => panic!("not a file"),
    }
}
