//! What of an organization a run reaches, as files tell it. Parameters name it `$tables.NAME`, `$structures.NAME`,
//! `$functions.NAME` and `$workflows.NAME`, in place of the id.

use serde::Deserialize;
use serde_json::Value;

/// A custom function.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// The names of its parameters.
    pub parameters: Vec<String>,
    /// Its code.
    pub code: String,
    /// What its calls from templates give, for who cannot run the code. All others fail.
    #[serde(default)]
    pub calls: Vec<FunctionCall>,
}

/// A call and what comes of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FunctionCall {
    /// The arguments.
    pub with: Vec<Value>,
    /// What it returns.
    pub gives: Option<Value>,
    /// The code it fails with, and the message.
    pub fails: Option<(String, String)>,
}

/// A database without rows.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its columns, as the API takes them.
    pub columns: Vec<Value>,
}

/// A structure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Structure {
    /// Its fields, as the API takes them.
    pub fields: Vec<Value>,
}
