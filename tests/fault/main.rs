//! What happens when things break: processes, nodes, connections, databases, disks, clocks.
//!
//! Every fault meets the same load. A [`ledger`] outside of the service knows each request and what it was answered, a
//! [`sink`] each outgoing call and its key, and when the fault is over a [`reckoning`] compares both with what the service
//! says: no acknowledgement lost, no run twice, none stuck, no credit gone astray, no key changed.
//!
//! What `docs/faults.md` calls the long suite is the same tests with `SWITCHYARD_FAULT_LONG=1`. `SWITCHYARD_FAULT_SEED`
//! repeats the choices of a round.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
#![allow(clippy::unwrap_used, reason = "tests")]

mod balancer;
mod cluster;
mod ledger;
mod proxy;
mod random;
mod reckoning;
mod settings;
mod sink;
mod tenant;

mod changes;
mod children;
mod clocks;
mod disk;
mod effects;
// A release build has none.
#[cfg(debug_assertions)]
mod failpoints;
mod kill;
mod nodes;
mod poison;
mod polls;
mod postgres;
mod power;
mod requests;
mod rolling;
mod schedules;
