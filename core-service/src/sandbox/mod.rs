//! Runs JavaScript that users wrote where it can hurt nobody: in child processes that can compute and nothing else.
//!
//! - `worker` is such a process: this binary, started as `switchyard sandbox-worker`. It takes everything away from
//!   itself (`confinement`) before it reads its first call, and gives each call a runtime of its own (`interpreter`,
//!   `console`, `text`).
//! - `process` is a worker as this process sees it; `pool` hands workers out: one serves one organization only, for as
//!   long as it lives. `message` and `frame` are what is said between the two.
//!
//! A call has a limit of its own, which begins when it runs. The worker keeps it; when it cannot, because a native loop
//! of the interpreter does not look up, the process is killed and replaced.
//!
//! Deliberately absent: what the code is for (`nodes`, `functions`), retries and recording (the runtime), and any way
//! out: no files, no network, no modules, no timers.

mod confinement;
mod console;
mod frame;
mod interpreter;
mod message;
mod pool;
mod process;
mod text;
pub mod worker;

pub use message::{Call, Failure, FailureKind, Form, MAX_REQUEST, MAX_RESULT, Outcome};
pub use pool::{Sandbox, SandboxConfig, SandboxError};
