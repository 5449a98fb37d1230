//! Databases: tables that are made, changed and deleted, and rows that are filtered, sorted and paged.

mod rows;
pub(crate) mod schema;
