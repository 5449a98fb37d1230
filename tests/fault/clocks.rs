//! The clocks of machines leap by hours (libfaketime): no lease is lost by that, nothing runs early, twice or never.

use std::path::{Path, PathBuf};

use core_service::clock::now_ms as now;
use serde_json::json;
use test_support::{
    Server, ServerOptions, TemporaryDirectory, graphs, postgres_or_skip, say_loudly, text, until,
};

use crate::cluster::{self, Cluster, figure};
use crate::settings;
use crate::tenant::{CONNECTIONS, Kind, Tenant};

const KINDS: [Kind; 4] = [Kind::Quick, Kind::Waiting, Kind::Calling, Kind::Asking];
/// Calls between the leaps.
const CALLS: usize = 60;
/// How many milliseconds ahead schedules are set: long enough to see that they do not run early.
const SOON_MS: i64 = 6_000;
const HOUR_MS: i64 = 3_600_000;
/// The default: a busy machine does not lose it, and a leap goes far beyond it.
const LEASE_MS: u64 = 10_000;

#[tokio::test(flavor = "multi_thread")]
async fn nodes_whose_clocks_leap_go_by_the_database() {
    let Some(database) = postgres_or_skip("clocks that leap").await else {
        return;
    };
    let Some(clocks) = Clock::several_or_skip::<2>() else {
        return;
    };
    let node = |clock: &Clock| ServerOptions {
        database_url: Some(database.url.clone()),
        environment: clock.environment(),
        ..cluster::options(LEASE_MS)
    };
    let cluster = Cluster::of(clocks.iter().map(node).collect()).await;
    for _ in 0..settings::rounds(1, 10) {
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let doors = cluster.doors();
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        let soon = scheduled(&tenant, now() + SOON_MS).await;
        let later = scheduled(&tenant, now() + HOUR_MS).await;
        for leaps in [["+3h", "-3h"], ["-3h", "+3h"], ["+0", "+0"]] {
            for (clock, leap) in clocks.iter().zip(leaps) {
                clock.leap(leap);
            }
            let so_far = round.ledger.acknowledged_now();
            round.ledger.acknowledged(so_far + CALLS).await;
        }
        let _logs = cluster.show_logs();
        assert_eq!(fired(&tenant, &soon, 1).await.len(), 1);
        assert_eq!(fired(&tenant, &later, 0).await, [0_i64; 0], "an hour early");
        load.stop().await;
        round.comes_out_even(&doors, &tenant.api).await;
        keep_their_leases(&cluster.nodes).await;
    }
    drop(cluster);
    database.drop_now().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_its_runs_when_the_clock_leaps() {
    let Some([clock]) = Clock::several_or_skip::<1>() else {
        return;
    };
    let options = ServerOptions {
        environment: clock.environment(),
        ..cluster::options(LEASE_MS)
    };
    let cluster = Cluster::of(vec![options]).await;
    for _ in 0..settings::rounds(1, 10) {
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&[Kind::Quick, Kind::Calling, Kind::Asking]).await;
        let doors = cluster.doors();
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        // There the machine's clock is the only one there is: waits and schedules follow it, leases do not.
        for leap in ["+3h", "-3h", "+0"] {
            clock.leap(leap);
            let so_far = round.ledger.acknowledged_now();
            round.ledger.acknowledged(so_far + CALLS).await;
        }
        let _logs = cluster.show_logs();
        load.stop().await;
        round.comes_out_even(&doors, &tenant.api).await;
        keep_their_leases(&cluster.nodes).await;
    }
}

/// A workflow that runs once, at this time.
async fn scheduled(tenant: &Tenant, at: i64) -> String {
    let graph = graphs::chain(&[("schedule_trigger", json!({})), ("set", json!({ "fields": {} }))]);
    let workflow = tenant.live("Scheduled", graph).await;
    let recurrence = json!({ "kind": "once", "at": at });
    let body = json!({ "recurrence": recurrence });
    let set = tenant.api.patch(format!("/workflows/{workflow}"), body).await;
    let _workflow = set.data(200);
    workflow
}

/// When the runs of a workflow began, in epoch milliseconds, once there are so many.
async fn fired(tenant: &Tenant, workflow: &str, number: usize) -> Vec<i64> {
    let path = format!("/runs?workflowId={workflow}");
    let mut runs = Vec::new();
    let ran = until(async || {
        runs = tenant.api.all_pages(&path).await;
        (runs.len() >= number).then_some(())
    });
    assert!(ran.await.is_some(), "{workflow} does not run");
    let mut began = Vec::new();
    for run in &runs {
        let report = tenant
            .api
            .get(format!("/runs/{}", text(&run["id"])))
            .await
            .data(200);
        let output = &report["nodes"][0]["output"];
        let instant = |name: &str| {
            let parsed: jiff::Timestamp = text(&output[name]).parse().unwrap();
            parsed.as_millisecond()
        };
        assert!(instant("firedAt") >= instant("scheduledAt"), "early: {report}");
        began.push(instant("firedAt"));
    }
    began
}

async fn keep_their_leases(nodes: &[Server]) {
    for node in nodes {
        for name in ["leases_lost", "runs_taken_over"] {
            let figure = figure(node, &format!("switchyard_{name}_total")).await;
            assert_eq!(figure, 0, "{name}: {}", node.log());
        }
    }
}

/// Where Debian puts the library, by the machine's kind.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// The wall clock of one process. Its steady clock is left alone.
struct Clock {
    library: PathBuf,
    directory: TemporaryDirectory,
}

impl Clock {
    fn several_or_skip<const N: usize>() -> Option<[Self; N]> {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        let library = folders
            .map(|folder| folder.path().join(LIBRARY))
            .find(|path| path.is_file());
        let Some(library) = library else {
            let missing = "no libfaketime; install it (Debian: apt-get install faketime)";
            let required = std::env::var("SWITCHYARD_TEST_REQUIRE_FAKETIME").is_ok_and(|value| value == "1");
            assert!(!required, "{missing}");
            say_loudly(&format!("SKIPPED: clocks that leap: {missing}"));
            return None;
        };
        Some(std::array::from_fn(|_| {
            let clock = Self {
                library: library.clone(),
                directory: TemporaryDirectory::new("clock").unwrap(),
            };
            clock.leap("+0");
            clock
        }))
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("offset")
    }

    fn environment(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        let variables = [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file())),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Moves the clock, from the true time.
    fn leap(&self, offset: &str) {
        // In one step: it is read at every moment.
        let new = self.directory.path().join("new");
        std::fs::write(&new, format!("{offset}\n")).unwrap();
        std::fs::rename(new, self.file()).unwrap();
    }
}
