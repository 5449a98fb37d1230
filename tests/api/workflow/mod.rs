//! Workflows: made, changed, edited, deployed, listed.

mod create;
mod deploy;
mod expression;
mod list;
mod operation;
mod topology;
mod update;
