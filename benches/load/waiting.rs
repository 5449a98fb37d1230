//! Runs that only wait: what so many cost while they sleep, and how late they wake.
//!
//! Each is started by a webhook call and waits until the instant that the call names. The instants are spread evenly, or
//! are one. What is told of lateness is of samples that are started among all the others: from the instant to the end of
//! the node that waits for it, as their reports say.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};
use test_support::{Api, Server, graphs, text, wire};

use crate::Options;
use crate::generator::{self, Calls};
use crate::hooks::{finished, go_live};
use crate::process::Usage;

/// Different instants.
const INSTANTS: u64 = 600;
/// Runs started in one piece before some are started as samples, as the time it may take.
const PIECE: Duration = Duration::from_secs(1);
const SAMPLES_OF_A_PIECE: u64 = 25;
/// Whoever waits longer than this after the last instant has lost runs.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// A run whose lateness is looked at.
struct Sample {
    run: String,
    due_at_ms: i64,
}

pub(crate) async fn measure(server: &Server, options: &Options) {
    let api = server.first_api();
    let path = go_live(
        &api,
        graphs::chain(&[
            ("webhook_trigger", json!({})),
            ("wait", json!({ "until": "{{1.body.until}}" })),
            ("set", json!({ "fields": { "woken": true } })),
        ]),
    )
    .await;
    let due_at_ms = now_ms() + i64::try_from(options.due_in * 1_000).unwrap();
    let instant = |number: u64| {
        let offset_ms = options.spread * 1_000 * (number % INSTANTS) / INSTANTS;
        due_at_ms + i64::try_from(offset_ms).unwrap()
    };
    let request = |due_at_ms: i64| {
        let body = json!({ "until": due_at_ms }).to_string();
        wire::request("POST", &path, &[], &body)
    };
    let calls = Calls {
        requests: (0..INSTANTS).map(|number| request(instant(number))).collect(),
        success: 202,
        every: None,
    };

    let total = options.total.unwrap_or(1_000_000);
    let before = Usage::of(server.pid());
    println!("before: RSS {:.0} MiB", before.memory_mib);
    let (began, mut waiting, mut samples) = (Instant::now(), 0, Vec::new());
    let mut connection = wire::Connection::open(server.rest_address()).unwrap();
    while waiting < total {
        let load = generator::run(server.rest_address(), calls.clone(), 64, PIECE).await;
        for _ in 0..SAMPLES_OF_A_PIECE {
            // Steps of a prime number reach all instants.
            let due_at_ms = instant(samples.len() as u64 * 151);
            let answer = connection.exchange(&request(due_at_ms)).unwrap();
            let accepted: Value = serde_json::from_slice(&answer.body).unwrap();
            let run = text(&accepted["data"]["runId"]);
            samples.push(Sample { run, due_at_ms });
        }
        waiting += load.answered() + SAMPLES_OF_A_PIECE;
        assert!(now_ms() < due_at_ms, "{waiting} runs took longer than --due-in");
    }
    let (took, after) = (began.elapsed().as_secs_f64(), Usage::of(server.pid()));
    println!(
        "{waiting} runs wait after {took:.0} s ({:.0}/s, {:.3} ms of CPU each): RSS {:.0} MiB",
        waiting as f64 / took,
        1000.0 * (after.cpu_seconds - before.cpu_seconds) / waiting as f64,
        after.memory_mib
    );

    let asleep = Duration::from_millis(u64::try_from(due_at_ms - now_ms()).unwrap_or(0));
    tokio::time::sleep(asleep).await;
    let before = Usage::of(server.pid());
    println!("when the first are due: RSS {:.0} MiB", before.memory_mib);
    let (began, mut most_mib) = (Instant::now(), before.memory_mib);
    while finished(&api).await < waiting {
        assert!(
            began.elapsed() < Duration::from_secs(options.spread) + PATIENCE,
            "runs sleep on"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
        most_mib = most_mib.max(Usage::of(server.pid()).memory_mib);
    }
    let (took, after) = (began.elapsed().as_secs_f64(), Usage::of(server.pid()));
    println!(
        "all have ended {took:.1} s after the first instant, {} s after it the last was due ({:.0}/s, {:.3} ms of CPU \
         each): RSS at most {most_mib:.0} MiB, now {:.0} MiB",
        options.spread,
        waiting as f64 / took,
        1000.0 * (after.cpu_seconds - before.cpu_seconds) / waiting as f64,
        after.memory_mib
    );
    tell_lateness(&api, &samples).await;
}

async fn tell_lateness(api: &Api, samples: &[Sample]) {
    let mut late_ms = Vec::with_capacity(samples.len());
    for Sample { run, due_at_ms } in samples {
        let report = api.get(format!("/runs/{run}")).await.data(200);
        let woken: Timestamp = text(&report["nodes"][1]["finishedAt"]).parse().unwrap();
        late_ms.push(woken.as_millisecond() - due_at_ms);
    }
    late_ms.sort_unstable();
    let at = |share: f64| late_ms[((late_ms.len() - 1) as f64 * share) as usize];
    println!(
        "late, of {} samples: least {} ms, median {} ms, 99 % {} ms, most {} ms",
        samples.len(),
        at(0.0),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

#[allow(
    clippy::disallowed_methods,
    reason = "a benchmark names instants to the server by the clock that both share"
)]
fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
