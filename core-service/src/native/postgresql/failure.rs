//! What the server's errors mean, by the classes of its codes (SQLSTATE).

use tokio_postgres::Error;
use tokio_postgres::error::DbError;

use crate::native::Failure;

/// Why there is no session.
pub fn not_opened(error: &Error) -> Failure {
    let Some(told) = error.as_db_error() else {
        return Failure::Unreachable(format!("the server cannot be used: {}", whole(error)));
    };
    match told.code().code() {
        // Who is asking, and for which database.
        code if code.starts_with("28") || code == "3D000" => Failure::Credential(said(told)),
        code if is_busy(code) || is_ending(code) => Failure::Busy(said(told)),
        _ => Failure::Refused(said(told)),
    }
}

/// Why a statement failed. Its transaction is undone.
pub fn failed(error: &Error) -> Failure {
    let Some(told) = error.as_db_error() else {
        return match error.is_closed() || is_io(error) {
            true => undone(&whole(error)),
            false => Failure::Refused(whole(error)),
        };
    };
    match told.code().code() {
        code if is_busy(code) => Failure::Busy(said(told)),
        code if is_ending(code) => undone(&said(told)),
        _ => Failure::Refused(said(told)),
    }
}

/// Why a commit failed: refused by the server, or nobody knows.
pub fn undecided(error: &Error) -> Failure {
    match error.as_db_error() {
        Some(told) if !is_ending(told.code().code()) => failed(error),
        _ => Failure::Lost(whole(error)),
    }
}

fn undone(why: &str) -> Failure {
    Failure::Unreachable(format!(
        "the connection to the server was lost before the commit ({why}); nothing was changed"
    ))
}

/// Too many connections or too little memory, a deadlock, a conflict, a lock that is not to be had.
fn is_busy(code: &str) -> bool {
    code.starts_with("53") || matches!(code, "40001" | "40P01" | "55P03" | "57P03")
}

/// The server or the session ends.
fn is_ending(code: &str) -> bool {
    code.starts_with("08") || matches!(code, "57P01" | "57P02" | "57P05")
}

fn is_io(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}

/// What the server says: its sentence, its code, and what it adds.
fn said(told: &DbError) -> String {
    let mut said = format!("{} ({})", told.message(), told.code().code());
    for more in [told.detail(), told.hint()].into_iter().flatten() {
        said.push_str(": ");
        said.push_str(more);
    }
    said
}

/// An error with its cause.
fn whole(error: &Error) -> String {
    match (error.as_db_error(), std::error::Error::source(error)) {
        (Some(told), _) => said(told),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    }
}
