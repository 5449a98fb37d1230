//! The same operations, through REST and through gRPC, on SQLite and on PostgreSQL, come to the same four times.
//!
//! A script of random operations, good and bad ones, is applied to four worlds, one organization each. After each step
//! the worlds must have given the same answer, down to the sentences of errors; at the end everything that can be read
//! must be the same. Times are not compared, except for a workflow's `updatedAt`, by which writes exclude each other.
//!
//! `SWITCHYARD_DIFFERENTIAL_CASES` (12) makes it longer, `SWITCHYARD_DIFFERENTIAL_SEED` repeats what failed.

mod door;
mod graph;
mod names;
mod noun;
mod operation;
mod script;
mod side;
mod table;
mod values;
mod workflow;

use std::cell::Cell;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use core_service::store::Store;
use door::Outcome;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use script::Step;
use serde_json::Value;
use side::Side;
use test_support::{ShowLog, say_loudly};
use tokio::runtime::Runtime;

use crate::world::World;

const CASES: u64 = 12;
/// How long a shorter script is looked for, when one has failed.
const SHRINKING_MS: u32 = 60_000;

#[test]
fn both_doors_and_both_databases_tell_the_same() {
    let seed = number_from("SWITCHYARD_DIFFERENTIAL_SEED")
        .unwrap_or_else(|| RandomState::new().build_hasher().finish());
    let cases = number_from("SWITCHYARD_DIFFERENTIAL_CASES").unwrap_or(CASES);
    let config = Config {
        cases: u32::try_from(cases).unwrap(),
        failure_persistence: None,
        max_shrink_time: SHRINKING_MS,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let runtime = Runtime::new().unwrap();
    let databases = runtime.block_on(Database::all());
    let tally = Tally::default();
    let result = runner.run(&script::script(), |steps| {
        runtime.block_on(compare(&databases, steps, &tally))
    });
    match result {
        Ok(()) => tally.check(),
        Err(TestError::Fail(why, steps)) => {
            let steps: Vec<String> = steps.iter().map(|step| format!("  {step:?}")).collect();
            let steps = steps.join("\n");
            panic!(
                "{why}\nthe shortest script found:\n{steps}\nSWITCHYARD_DIFFERENTIAL_SEED={seed} repeats it"
            );
        }
        Err(error) => panic!("{error}\nSWITCHYARD_DIFFERENTIAL_SEED={seed} repeats it"),
    }
}

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

/// How many random steps there were, and how many of them succeeded.
#[derive(Default)]
struct Tally {
    steps: Cell<u32>,
    successes: Cell<u32>,
}

impl Tally {
    fn count(&self, outcome: &Outcome) {
        self.steps.set(self.steps.get() + 1);
        if outcome.status < 300 {
            self.successes.set(self.successes.get() + 1);
        }
    }

    /// Worlds that refuse nearly everything agree for no good reason.
    fn check(&self) {
        let (steps, successes) = (self.steps.get(), self.successes.get());
        println!("{successes} of {steps} steps succeeded");
        assert!(successes * 4 > steps, "{successes} of {steps} steps succeeded");
    }
}

/// A database that is compared, and its rows.
struct Database {
    postgres: bool,
    store: Store,
    _log: ShowLog<'static>,
}

impl Database {
    async fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for postgres in [false, true] {
            match Self::world(postgres).await {
                Some(world) => all.push(Self {
                    postgres,
                    store: world.store().await,
                    _log: world.show_log(),
                }),
                None => say_loudly("COMPARED ON SQLITE ALONE: REST with gRPC, and not with PostgreSQL"),
            }
        }
        all
    }

    async fn world(postgres: bool) -> Option<World> {
        match postgres {
            true => World::postgres("both_doors_and_both_databases_tell_the_same").await,
            false => Some(World::sqlite().await),
        }
    }

    async fn sides(&self) -> [Side; 2] {
        let label = if self.postgres { "PostgreSQL" } else { "SQLite" };
        let world = async || Self::world(self.postgres).await.unwrap();
        [
            Side::over_rest(label, world().await, self.store.clone()),
            Side::over_grpc(label, world().await, self.store.clone()).await,
        ]
    }
}

/// Takes the steps on all sides; an error tells the first difference.
async fn compare(databases: &[Database], steps: Vec<Step>, tally: &Tally) -> Result<(), TestCaseError> {
    let mut sides = Vec::new();
    for database in databases {
        sides.extend(database.sides().await);
    }
    let beginning = script::beginning();
    let result = compare_sides(&mut sides, &beginning, &steps, tally).await;
    result.map_err(TestCaseError::fail)
}

async fn compare_sides(
    sides: &mut [Side],
    beginning: &[Step],
    steps: &[Step],
    tally: &Tally,
) -> Result<(), String> {
    for (number, step) in beginning.iter().chain(steps).enumerate() {
        let mut outcomes = Vec::new();
        for side in &mut *sides {
            outcomes.push(side.take(step).await);
        }
        same(sides, &outcomes, &format!("step {number}, {step:?},"))?;
        if number >= beginning.len() {
            tally.count(&outcomes[0]);
        }
        // Lists are ordered by milliseconds, so each step gets one of its own.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut states = Vec::new();
    for side in &mut *sides {
        states.push(side.read_all().await);
    }
    let reads = states[0].len();
    for state in &states {
        assert_eq!(state.len(), reads, "the sides know as many things");
    }
    for place in 0..reads {
        let outcomes: Vec<Outcome> = states.iter().map(|state| state[place].1.clone()).collect();
        same(sides, &outcomes, &format!("at the end, {:?}", states[0][place].0))?;
    }
    Ok(())
}

fn same(sides: &[Side], outcomes: &[Outcome], what: &str) -> Result<(), String> {
    let first = &outcomes[0];
    for (side, outcome) in sides.iter().zip(outcomes) {
        if outcome != first {
            let (one, other) = (&sides[0].label, &side.label);
            let place = difference(&first.body, &outcome.body, String::new());
            return Err(format!(
                "{what} differs at {place:?}:\n{one}: {first}\n{other}: {outcome}"
            ));
        }
    }
    Ok(())
}

/// The path of the first place where two values differ.
fn difference(one: &Value, other: &Value, path: String) -> String {
    match (one, other) {
        (Value::Object(ones), Value::Object(others)) if ones.len() == others.len() => {
            let differs = ones.iter().find(|(key, value)| others.get(*key) != Some(value));
            match differs {
                Some((key, value)) => {
                    let other = others.get(key).unwrap_or(&Value::Null);
                    difference(value, other, format!("{path}.{key}"))
                }
                None => path,
            }
        }
        (Value::Array(ones), Value::Array(others)) if ones.len() == others.len() => {
            let differs = (0..ones.len()).find(|place| ones[*place] != others[*place]);
            match differs {
                Some(place) => difference(&ones[place], &others[place], format!("{path}[{place}]")),
                None => path,
            }
        }
        _ => path,
    }
}
