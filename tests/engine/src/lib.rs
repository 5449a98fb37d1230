//! Scenarios: runs of workflows told in YAML, one file each, in the folder above.
//!
//! One suite with two runners: the pure engine with simulated time, and the whole product over its API. Both read a
//! [`Scenario`], let it happen in their way, and compare what they saw with what it expects. Deliberately absent: both
//! runners.
//!
//! ```yaml
//! shows: One sentence.
//! nodes:
//!   1: manual_trigger                       # a kind alone, or with params and config
//!   2: { kind: set, params: { fields: { a: "{{1.a}}" } }, config: { onError: continue } }
//! edges:                                    # by id: from-to, from-to-error, from-to-fallback
//!   1-2: { filter: "{{1.a > 0}}", order: 1 }
//! start: { outputs: { 1: { a: 1 } } }       # node: where a scoped run begins; timeoutMs of the run
//!                                           # webhook: the body of a call; failureOf: another workflow
//! variables: { NAME: value }                # secrets: likewise; tables, structures, functions, workflows: see there
//! outside: { 2: [{ error: { code: HTTP_ERROR, message: m } }, { output: {}, afterMs: 5 }] } # what requests come to
//! answers: { 3: [{ output: { a: 1 } }] }    # what other kinds with I/O bring: told to the engine, asked of the product
//! simulated: true                           # not in real time
//! then:                                     # what somebody does, in this order
//!   - respond: { node: 2, says: { yes: true } } # taken: other values; refused: a code
//!   - set: { NAME: value }
//!   - retry: 2
//!   - startAt: 2                            # another run, with this one's outputs
//!   - rerun
//!   - cancel
//! expect:
//!   status: succeeded
//!   nodes: { 1: completed, 2/0: { status: failed, error: { code: X, message: m } } }
//!   taken: [1-2]                            # error, credits, attempt, order, tookMs; response: of a webhook
//! ```
//!
//! `$any` stands for whatever is there, such as an id: what is expected so is only expected to be.

// A scenario that cannot be used ends its test.
#![allow(clippy::missing_panics_doc, reason = "each panic is a failed test")]

mod drawing;
mod expectation;
mod scenario;
mod surroundings;

use std::path::Path;

pub use drawing::{Drawing, Edge, Node, ends};
pub use expectation::{ANY, brought_otherwise, differences, mutants};
pub use scenario::{Action, Outside, OutsideError, Response, Scenario, Start};
pub use surroundings::{Function, FunctionCall, Structure, Table};

/// All scenarios, by name.
#[must_use]
pub fn all() -> Vec<Scenario> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).expect("the folder of scenarios");
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    paths.iter().map(|path| Scenario::read(path)).collect()
}
