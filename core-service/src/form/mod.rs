//! Forms: what a person is asked for, and whether an answer is one.
//!
//! Absent on purpose: who asks, how the form is shown, and where answers go.

mod check;
mod field;

pub use check::{Wrong, check};
pub use field::{Field, FieldType};

use serde::{Deserialize, Serialize};

/// What people are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// In a few words.
    pub title: String,
    /// In full; may be empty.
    pub message: String,
    /// What an answer holds.
    pub fields: Vec<Field>,
    /// Who should answer: whatever the workflow calls them, such as emails.
    pub assignees: Vec<String>,
}
