//! What the server's errors mean, by the words they begin with.

use ::redis::{ErrorKind, RedisError, ServerErrorKind};

use crate::native::Failure;

/// Why there is no session.
pub fn not_opened(error: &RedisError) -> Failure {
    let refuses = matches!(error.code(), Some("WRONGPASS" | "NOAUTH" | "NOPERM"));
    match error.kind() {
        ErrorKind::AuthenticationFailed => Failure::Credential(said(error)),
        _ if refuses => Failure::Credential(said(error)),
        ErrorKind::Server(ServerErrorKind::ResponseError | ServerErrorKind::NoPerm) => {
            Failure::Refused(said(error))
        }
        ErrorKind::Server(_) | ErrorKind::Io => {
            Failure::Unreachable(format!("the server cannot be used: {}", said(error)))
        }
        _ => busy_or(error, Failure::Refused),
    }
}

/// Why a command failed.
pub fn failed(error: &RedisError) -> Failure {
    match error.kind() {
        ErrorKind::Io => Failure::Lost(said(error)),
        ErrorKind::Server(
            ServerErrorKind::BusyLoading
            | ServerErrorKind::TryAgain
            | ServerErrorKind::ClusterDown
            | ServerErrorKind::MasterDown,
        ) => Failure::Busy(said(error)),
        _ if matches!(error.code(), Some("NOAUTH" | "WRONGPASS")) => Failure::Credential(said(error)),
        _ => busy_or(error, Failure::Refused),
    }
}

/// A script that keeps the server, or too many clients: it is as if nothing was asked.
fn busy_or(error: &RedisError, otherwise: fn(String) -> Failure) -> Failure {
    let said = said(error);
    match error.code() {
        Some("BUSY") => Failure::Busy(said),
        _ if said.contains("max number of clients") => Failure::Busy(said),
        _ => otherwise(said),
    }
}

/// What the server, or the connection, says.
fn said(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (None, Some(detail)) => detail.to_owned(),
        _ => error.to_string(),
    }
}
