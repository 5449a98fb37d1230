//! Random graphs with random faults, by seed: processes that crash, lose their lease, are slow, and hear things twice;
//! nodes that run out of time; people who answer, twice, too late, or the wrong attempt.
//!
//! `SWITCHYARD_SIMULATION_SEED` runs one seed, the one that a failure names; `SWITCHYARD_SIMULATION_SEEDS` sets how many
//! are run (10,000).

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::{Value, json};

use crate::event::{Event, EventBody, ItemResult, Outcome};
use crate::failure::NodeError;
use crate::state::{NodeStatus, RunState, RunStatus};
use crate::testing::cluster::Cluster;
use crate::testing::world::{assert_same, ended_twice, replay};

/// Into how many tests the seeds are divided, so that they run at the same time.
const SHARES: u64 = 4;

#[test]
fn the_first_share_of_seeds_keeps_the_laws() {
    share(0);
}

#[test]
fn the_second_share_of_seeds_keeps_the_laws() {
    share(1);
}

#[test]
fn the_third_share_of_seeds_keeps_the_laws() {
    share(2);
}

#[test]
fn the_fourth_share_of_seeds_keeps_the_laws() {
    share(3);
}

#[test]
fn a_seed_repeats_itself() {
    for seed in 0..200 {
        let runs = [(); 2].map(|()| {
            let mut cluster = Cluster::of_seed(seed);
            cluster.run();
            (cluster.journal, cluster.injected)
        });
        assert_eq!(runs[0], runs[1], "seed {seed}");
    }
}

#[test]
fn seeds_reach_what_they_are_for() {
    let (mut faults, mut resumed, mut comparable) = (0, 0, 0);
    let (mut taken, mut refused, mut timed_out, mut went_on) = (0, 0, 0, 0);
    let mut outcomes = [0; 3];
    for seed in 0..500 {
        let mut cluster = Cluster::of_seed(seed);
        let mut smooth = cluster.without_faults();
        cluster.run();
        smooth.run();
        faults += usize::from(cluster.injected > 0);
        resumed += usize::from(cluster.resumed);
        comparable += usize::from(is_comparable(&cluster, &smooth));
        taken += usize::from(cluster.answers_taken > 0);
        refused += usize::from(cluster.answers_refused > 0);
        timed_out += usize::from(cluster.journal.iter().any(is_timeout));
        went_on += usize::from(cluster.journal.iter().any(went_on_without));
        match cluster.state().status() {
            RunStatus::Succeeded => outcomes[0] += 1,
            RunStatus::Failed => outcomes[1] += 1,
            _ => outcomes[2] += 1,
        }
    }
    assert!(
        faults > 250 && resumed > 30 && comparable > 70,
        "{faults} {resumed} {comparable}"
    );
    assert!(outcomes.iter().all(|reached| *reached > 10), "{outcomes:?}");
    assert!(
        taken > 80 && refused > 80 && timed_out > 50 && went_on > 25,
        "{taken} {refused} {timed_out} {went_on}"
    );
}

/// An attempt, or somebody who was asked, took too long.
fn is_timeout(event: &Event) -> bool {
    let failure = match &event.body {
        EventBody::NodeFailed { failure, .. } | EventBody::NodeRetrying { failure, .. } => failure,
        _ => return false,
    };
    failure.code == NodeError::TIMEOUT
}

/// Nobody answered, and the node completed.
fn went_on_without(event: &Event) -> bool {
    matches!(&event.body, EventBody::NodeCompleted { output, .. } if output.get("timedOut").is_some())
}

fn share(number: u64) {
    if let Some(seed) = number_from("SWITCHYARD_SIMULATION_SEED") {
        if seed % SHARES == number {
            keeps_the_laws(seed);
        }
        return;
    }
    let seeds = number_from("SWITCHYARD_SIMULATION_SEEDS").unwrap_or(10_000);
    for seed in (0..seeds).filter(|seed| seed % SHARES == number) {
        if let Err(broken) = catch_unwind(AssertUnwindSafe(|| keeps_the_laws(seed))) {
            eprintln!("this seed breaks a law: SWITCHYARD_SIMULATION_SEED={seed}");
            std::panic::resume_unwind(broken);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} must be a number, not {text:?}")))
}

/// That a run ends, that nothing ends twice or begins after its end, that no write of a lost lease gets through, and that
/// no attempt takes another's answer, is asserted by the cluster as it goes.
fn keeps_the_laws(seed: u64) {
    let mut cluster = Cluster::of_seed(seed);
    cluster.run();
    let state = cluster.state();
    assert!(state.status().is_terminal());
    assert_same(state, &replay(&cluster.plan, &cluster.journal));
    if !cluster.resumed {
        assert_eq!(ended_twice(&cluster.journal), []);
        let credits: u64 = state.nodes().map(|node| u64::from(node.credits_used)).sum();
        assert_eq!(state.credits_used(), credits);
    }
    for report in state.nodes() {
        assert!(
            report.credits_used <= report.node.credits,
            "node {} is paid twice",
            report.node.id
        );
    }
    let cancelled = |event: &Event| {
        matches!(
            event.body,
            EventBody::RunFinished {
                outcome: Outcome::Cancelled,
                ..
            }
        )
    };
    if cluster.journal.iter().any(cancelled) && !cluster.resumed {
        assert_eq!(state.status(), RunStatus::Cancelled, "something beat the cancel");
        return;
    }
    let mut smooth = cluster.without_faults();
    smooth.run();
    if is_comparable(&cluster, &smooth) {
        assert_eq!(report(cluster.state()), report(smooth.state()));
    }
}

/// Whether faults may have made no difference.
fn is_comparable(cluster: &Cluster, smooth: &Cluster) -> bool {
    is_deterministic(smooth) && !cluster.resumed && !cluster.was_too_slow
}

/// Whether the order in which things end makes no difference: nothing is given up, and no join takes what comes first.
fn is_deterministic(smooth: &Cluster) -> bool {
    let is_any = |node: &crate::plan::PlanNode| node.join == crate::config::Join::Any;
    let gives_up = |body: &EventBody| match body {
        EventBody::NodeCancelled { .. } => true,
        EventBody::ItemFinished { result, .. } => matches!(result, ItemResult::Failed { .. }),
        EventBody::RunFinished { outcome, .. } => *outcome != Outcome::Succeeded,
        _ => false,
    };
    let has_stop = smooth.plan.nodes().iter().any(|node| node.module_slug == "stop");
    !has_stop
        && !smooth.plan.nodes().iter().any(is_any)
        && !smooth.journal.iter().any(|event| gives_up(&event.body))
}

/// What people are shown, apart from times.
fn report(state: &RunState) -> Value {
    let mut nodes: Vec<(String, Value)> = state
        .nodes()
        .map(|node| {
            let place = format!("{}/{}", node.node.id, node.iteration);
            let output = node.output.map(|output| without_times(output));
            let error = node.failure.map(ToString::to_string);
            let shown = json!({
                "status": node.status.as_str(),
                "output": output,
                "error": error.filter(|_| node.status == NodeStatus::Failed),
                "attempt": node.attempt,
                "credits": node.credits_used,
            });
            (place, shown)
        })
        .collect();
    nodes.sort_by(|(a, _), (b, _)| a.cmp(b));
    json!({
        "status": state.status().as_str(),
        "credits": state.credits_used(),
        "taken": state.edges_taken().collect::<Vec<_>>(),
        "nodes": nodes,
    })
}

/// An output without the instants that waits give.
fn without_times(output: &Value) -> Value {
    match output {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "until");
            let kept = kept.map(|(name, field)| (name.clone(), without_times(field)));
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(without_times).collect(),
        other => other.clone(),
    }
}
