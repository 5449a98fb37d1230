//! Workflows: made, changed, edited, deployed, listed.

mod create;
mod deploy;
mod list;
mod operation;
mod resolve;
mod test_module;
mod topology;
mod update;
