//! The clocks of machines leap by hours (libfaketime): no lease is lost by that, nothing runs early, twice or never. One
//! that crawls loses its lease without noticing.

use std::path::{Path, PathBuf};

use core_service::clock::now_ms as now;
use serde_json::json;
use test_support::{
    Server, ServerOptions, TemporaryDirectory, graphs, postgres_or_skip, say_loudly, text, until,
};

use crate::cluster::{self, Cluster, Processes, figure, lease_ms};
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
        let soon = scheduled(&tenant, SOON_MS).await;
        let later = scheduled(&tenant, HOUR_MS).await;
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
async fn a_node_whose_clock_crawls_has_its_late_writes_refused() {
    let Some(database) = postgres_or_skip("a clock that crawls").await else {
        return;
    };
    let Some([clock]) = Clock::several_or_skip::<1>() else {
        return;
    };
    let node = |environment| ServerOptions {
        database_url: Some(database.url.clone()),
        environment,
        ..cluster::options(lease_ms())
    };
    let nodes = vec![node(Vec::new()), node(clock.environment_of_both())];
    let cluster = Cluster::of(nodes).await;
    for lost in 1..=settings::rounds(1, 10) {
        let mut processes = Processes::of(&database.url).await;
        let tenant = Tenant::open(&cluster.nodes[0]).await;
        let round = tenant.round(&KINDS).await;
        let doors = cluster.doors();
        let load = round.ledger.send_on_and_on(CONNECTIONS, &doors);
        round.ledger.acknowledged(CALLS).await;
        // It registered last.
        let victim = processes.ids().await[1].clone();
        processes.drives(&victim).await;
        // Its lease ends long before it would renew it, or take it for ended.
        clock.crawl(cluster.nodes[1].pid());
        processes.is_relieved(&victim).await;
        let refused = until(async || {
            let leases = figure(&cluster.nodes[1], "switchyard_leases_lost_total").await;
            (leases >= lost).then_some(())
        });
        assert!(
            refused.await.is_some(),
            "no write is refused:\n{}",
            cluster.nodes[1].log()
        );
        clock.leap("+0");
        let so_far = round.ledger.acknowledged_now();
        round.ledger.acknowledged(so_far + CALLS).await;
        load.stop().await;
        let _logs = cluster.show_logs();
        round.comes_out_even(&doors, &tenant.api).await;
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

/// A workflow that runs once, so many milliseconds from now. An instant that is over when it is set never comes, so it is
/// reckoned from when all else is done.
async fn scheduled(tenant: &Tenant, ahead_ms: i64) -> String {
    let graph = graphs::chain(&[("schedule_trigger", json!({})), ("set", json!({ "fields": {} }))]);
    let workflow = tenant.live("Scheduled", graph).await;
    let recurrence = json!({ "kind": "once", "at": now() + ahead_ms });
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

/// How long a process has been there.
fn age_seconds(pid: u32) -> f64 {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let started: f64 = fields.split_whitespace().nth(19).unwrap().parse().unwrap();
    let uptime = std::fs::read_to_string("/proc/uptime").unwrap();
    let uptime: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
    uptime - started / TICKS_PER_SECOND
}

/// Where Debian puts the library, by the machine's kind.
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// The clocks of one process.
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

    /// What has a process go by it, except for its steady clock.
    fn environment(&self) -> Vec<(String, String)> {
        let mut variables = self.environment_of_both();
        variables.push(("FAKETIME_DONT_FAKE_MONOTONIC".to_owned(), "1".to_owned()));
        variables
    }

    /// The same for its steady clock, too.
    fn environment_of_both(&self) -> Vec<(String, String)> {
        let text = |path: &Path| path.display().to_string();
        let variables = [
            ("LD_PRELOAD", text(&self.library)),
            ("FAKETIME_TIMESTAMP_FILE", text(&self.file())),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
        ];
        variables.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// Has the clocks of a process go at a thousandth of their speed from now on.
    fn crawl(&self, pid: u32) {
        // The library counts from the process's start: with what has passed since then, the clocks do not leap.
        let passed = age_seconds(pid);
        self.set(&format!("+{passed:.3}"), 0.001);
    }

    /// Moves the clock from the true time; it goes as fast as that.
    fn leap(&self, offset: &str) {
        self.set(offset, 1.0);
    }

    fn set(&self, offset: &str, speed: f64) {
        // In one step: it is read at every moment. With the speed: the library keeps the one that it was told before.
        let new = self.directory.path().join("new");
        std::fs::write(&new, format!("{offset} x{speed}\n")).unwrap();
        std::fs::rename(new, self.file()).unwrap();
    }
}
