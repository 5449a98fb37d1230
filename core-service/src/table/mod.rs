//! What tables hold, wherever they are kept: columns, values, how values are ordered, and conditions on rows.
//!
//! Pure, so that the API, the node kinds and the store mean the same by a value, a comparison and an order. A table is
//! a `database` of the contract. Deliberately absent: SQL and pages, which are the store's.

mod column;
mod condition;
mod key;
mod row;
mod value;

pub use column::{Column, ColumnInput, ColumnType, arrange, find};
pub use condition::{Condition, KeyTest, MAX_CONDITIONS, matching, parse_conditions};
pub use key::{FIRST_VALUE, Key, NULL, key};
pub use row::{Row, RowProblem, Values, by_column_name, given_values};
pub use value::{accept, convert};
