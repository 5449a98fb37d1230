//! What callers hand in as text or as messages, read: API keys, cursors, free-form JSON, graph operations.
//!
//! Deliberately absent: who may hand it in, where it is kept, and anything that waits. So it is all there is to build for
//! the fuzz targets in `tests/fuzz`, which hold every reader here against what strangers write.

pub mod api_key;
pub mod cursor;
pub mod graph_op;
pub mod json;

use contract::validation::Violation;

/// What was read, or what is wrong with it.
pub type Result<T> = std::result::Result<T, Violation>;

fn refuse(path: impl Into<String>, message: impl Into<String>) -> Violation {
    Violation {
        path: path.into(),
        message: message.into(),
    }
}
