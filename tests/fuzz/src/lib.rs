//! What the targets share: values to evaluate against, and what holds of every evaluation.

mod evaluation;
mod world;

pub use evaluation::{Evaluated, evaluate};
pub use world::Functions;
