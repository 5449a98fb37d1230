//! Webhook calls all at once: how many are accepted, and how much memory that takes.

use std::time::Instant;

use test_support::{Server, wire, workload};

use crate::Options;
use crate::generator::{self, Burst};
use crate::hooks::{finished, go_live};
use crate::process::Usage;

/// As many calls as `--total` says, three times over.
pub(crate) async fn measure(server: &Server, options: &Options) {
    let api = server.first_api();
    let path = go_live(&api, workload::graph()).await;
    let request = wire::request("POST", &path, &[], &workload::body());
    let size = usize::try_from(options.total.unwrap_or(10_000)).unwrap();
    println!(
        "{:>8} {:>11} {:>12} {:>8} {:>8}  answers",
        "calls", "answered ms", "completed ms", "RSS MiB", "peak MiB"
    );
    for _ in 0..3 {
        let before = finished(&api).await;
        let began = Instant::now();
        let Burst { by_status, took } = generator::burst(server.rest_address(), request.clone(), size).await;
        let accepted = by_status.get(&202).copied().unwrap_or_default();
        while finished(&api).await < before + accepted {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        let usage = Usage::of(server.pid());
        println!(
            "{size:>8} {:>11} {:>12} {:>8.0} {:>8.0}  {by_status:?}",
            took.as_millis(),
            began.elapsed().as_millis(),
            usage.memory_mib,
            usage.peak_mib,
        );
        assert_eq!(
            finished(&api).await,
            before + accepted,
            "runs that nobody was told of"
        );
    }
}
