//! The table of errors.

use std::fmt::Write;

use heck::ToUpperCamelCase;

use crate::options::{Contract, short_name};

pub fn implementations(contract: &Contract) -> String {
    let reasons = contract
        .enums()
        .find(|kind| kind.name() == "ErrorReason")
        .expect("the ErrorReason enum");
    let (mut rows, mut names) = (String::new(), String::new());
    for value in reasons.values().filter(|value| value.number() != 0) {
        let (code, http, grpc) = contract.error(&value).expect("every error reason has its row");
        let name = short_name(&reasons, value.name());
        let variant = name.to_upper_camel_case();
        let _ = writeln!(
            rows,
            "            Self::{variant} => &crate::errors::Row {{ name: {name:?}, code: {code:?}, http_status: {http}, grpc_status: {grpc} }},"
        );
        let _ = writeln!(names, "            {name:?} => Self::{variant},");
    }
    format!(
        "impl crate::v1::ErrorReason {{
    /// The row of this error in the table.
    pub fn row(self) -> &'static crate::errors::Row {{
        match self {{
            Self::Unspecified => Self::Internal.row(),
{rows}        }}
    }}

    /// The reason that `google.rpc.ErrorInfo` names.
    pub fn from_name(name: &str) -> Option<Self> {{
        Some(match name {{
{names}            _ => return None,
        }})
    }}
}}
"
    )
}
