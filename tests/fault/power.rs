//! Each acknowledgement follows its sync: between the bytes of a request and those of its 202, the kernel has synced the
//! write-ahead log that holds the run. Shown by a trace of system calls.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use test_support::wire::{Connection, request};
use test_support::{Server, ShowLog, TemporaryDirectory, say_loudly, until, workload};

use crate::cluster;
use crate::settings;
use crate::tenant::{Kind, Tenant};

#[tokio::test(flavor = "multi_thread")]
async fn each_acknowledgement_follows_its_sync() {
    let server = Server::start(cluster::options(10_000)).await;
    let _log = ShowLog(&server);
    let directory = TemporaryDirectory::new("trace").unwrap();
    let file = directory.path().join("trace");
    let Some(mut tracer) = trace_or_skip(&server, &file).await else {
        return;
    };
    let tenant = Tenant::open(&server).await;
    let round = tenant.round(&[Kind::Quick, Kind::Waiting]).await;
    let requests = settings::rounds(20, 500);
    // One at a time: what is synced between a request and its answer is synced for it.
    let mut connection = Connection::open(server.rest_address()).unwrap();
    for number in 0..requests {
        let hook = round.flows[number as usize % round.flows.len()]
            .hook
            .as_ref()
            .unwrap();
        let id = format!("traced-{number:05}");
        let call = request(
            "POST",
            &format!("/hooks/{}", hook.id),
            &[("webhook-id", &id)],
            &workload::body(),
        );
        let answer = tokio::task::block_in_place(|| connection.exchange(&call)).unwrap();
        assert_eq!(answer.status, 202);
    }
    let id = tracer.id().to_string();
    let detached = Command::new("kill").args(["-INT", &id]).status();
    assert!(detached.is_ok_and(|status| status.success()));
    tokio::task::block_in_place(|| tracer.wait()).unwrap();
    let trace = std::fs::read_to_string(&file).unwrap();
    assert_eq!(synced_before_they_were_acknowledged(&trace), requests);
}

/// Attaches strace to a server, or says loudly that it cannot.
async fn trace_or_skip(server: &Server, file: &Path) -> Option<Child> {
    let calls = "trace=fsync,fdatasync,pwrite64,recvfrom,read,sendto,write,writev,sendmsg";
    let started = Command::new("strace")
        .args([
            "--follow-forks",
            "--decode-fds=path",
            "--string-limit=400",
            "-e",
            calls,
        ])
        .arg("--output")
        .arg(file)
        .args(["--attach", &server.pid().to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut tracer = started.ok();
    let attached = until(async || {
        let ended = tracer
            .as_mut()
            .is_none_or(|tracer| !matches!(tracer.try_wait(), Ok(None)));
        let traced = is_traced(server.pid());
        (ended || traced).then_some(traced)
    });
    if attached.await == Some(true) {
        return tracer;
    }
    let missing = "strace cannot trace here (Debian: apt-get install strace; it needs ptrace)";
    let required = std::env::var("SWITCHYARD_TEST_REQUIRE_STRACE").is_ok_and(|value| value == "1");
    assert!(!required, "{missing}");
    say_loudly(&format!("SKIPPED: acknowledgements after their sync: {missing}"));
    None
}

/// Whether each thread of a process has a tracer.
fn is_traced(process_id: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process_id}/task")) else {
        return false;
    };
    let traced = |status: &str| {
        status
            .lines()
            .any(|line| line.starts_with("TracerPid:\t") && !line.ends_with("\t0"))
    };
    threads.flatten().all(|thread| {
        // One that has ended meanwhile needs none.
        std::fs::read_to_string(thread.path().join("status")).map_or(true, |status| traced(&status))
    })
}

/// How an answer begins that acknowledges a run.
const ACKNOWLEDGED: &str = "HTTP/1.1 202";

/// How many requests were acknowledged after the log was written and then synced, in the order in which calls returned.
fn synced_before_they_were_acknowledged(trace: &str) -> u64 {
    let mut acknowledged = 0;
    let mut place = Place::Idle;
    // What a call reads, writes to files and syncs is told when it returns; what it sends, when it begins.
    let told = |line: &&str| !line.contains("<unfinished") || line.contains(ACKNOWLEDGED);
    for line in trace.lines().filter(told) {
        place = match place {
            // The call came in whole: its id is in the bytes read.
            _ if line.contains("webhook-id: traced-") => Place::Read,
            Place::Read if is_of_log(line, &["pwrite64"]) => Place::Written,
            Place::Written if is_of_log(line, &["fdatasync", "fsync"]) && is_done(line) => Place::Synced,
            Place::Synced if line.contains(ACKNOWLEDGED) => {
                acknowledged += 1;
                Place::Idle
            }
            Place::Idle | Place::Read | Place::Written if line.contains(ACKNOWLEDGED) => {
                panic!("acknowledged before it was synced: {line}")
            }
            place => place,
        };
    }
    acknowledged
}

/// How far a request has come.
enum Place {
    Idle,
    Read,
    Written,
    Synced,
}

/// One of these calls on the write-ahead log. A call that another thread's came between does not repeat its file's name.
fn is_of_log(line: &str, calls: &[&str]) -> bool {
    let of_log = line.contains("switchyard.db-wal") || line.contains("resumed");
    of_log && calls.iter().any(|call| line.contains(call))
}

fn is_done(line: &str) -> bool {
    line.trim_end().ends_with("= 0")
}
