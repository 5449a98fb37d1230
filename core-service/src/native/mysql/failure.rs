//! What the server's errors mean, by their numbers, which MySQL and MariaDB share.

use mysql_async::{DriverError, Error, IoError, ServerError};

use crate::native::Failure;
use crate::outbound::is_distrust;

/// Access denied, to the server or to the database, and a database that there is not.
const CREDENTIAL: [u16; 5] = [1044, 1045, 1049, 1130, 1698];
/// Too many connections, a lock that is not to be had, a deadlock.
const BUSY: [u16; 6] = [1040, 1203, 1205, 1213, 1226, 1614];
/// The server or the session ends.
const ENDING: [u16; 3] = [1053, 1152, 1927];

/// Why there is no session.
pub fn not_opened(host: &str, error: &Error) -> Failure {
    match error {
        Error::Server(told) if CREDENTIAL.contains(&told.code) => Failure::Credential(said(told)),
        Error::Server(told) if BUSY.contains(&told.code) => Failure::Busy(said(told)),
        Error::Server(told) => Failure::Refused(said(told)),
        Error::Driver(DriverError::NoClientSslFlagFromServer) => {
            let message = "the server does not encrypt; set tls to disable to speak to it in the open";
            Failure::Credential(message.to_owned())
        }
        Error::Io(IoError::Tls(_)) => Failure::distrust(host, &cause(error)),
        Error::Io(IoError::Io(inner)) if is_distrust(inner) => Failure::distrust(host, &cause(error)),
        other => Failure::Unreachable(format!("{host} cannot be reached: {}", cause(other))),
    }
}

/// Why a statement failed; `meanwhile` is what it means when the connection is lost.
pub fn refused(error: Error, meanwhile: fn(String) -> Failure) -> Failure {
    match error {
        Error::Server(told) if BUSY.contains(&told.code) => Failure::Busy(said(&told)),
        Error::Server(told) if ENDING.contains(&told.code) => meanwhile(said(&told)),
        Error::Server(told) => Failure::Refused(said(&told)),
        Error::Driver(DriverError::LocalInfile(_)) => {
            Failure::Refused("the server asks for a file of this machine, which it does not get".to_owned())
        }
        Error::Driver(DriverError::StmtParamsMismatch { required, supplied }) => {
            Failure::Parameters(format!(
                "parameters must be {required} of them, as the statement has places (?); there are {supplied}"
            ))
        }
        Error::Driver(DriverError::MixedParams | DriverError::Params(_)) => {
            Failure::Parameters("the statement must name its parameters by ? alone".to_owned())
        }
        other => match cause(&other) {
            // The library says it in words alone.
            why if why.contains("max_allowed_packet") || why.contains("Packet too large") => {
                Failure::TooLarge("a row or a parameter is larger than a call may bring".to_owned())
            }
            why => meanwhile(why),
        },
    }
}

/// What happened to the connection.
fn cause(error: &Error) -> String {
    match error {
        Error::Io(IoError::Io(error)) => error
            .get_ref()
            .map_or_else(|| error.to_string(), ToString::to_string),
        Error::Io(IoError::Tls(error)) => format!("TLS failed: {error}"),
        other => other.to_string(),
    }
}

/// The connection is lost, and nobody knows what was done.
pub fn lost(why: String) -> Failure {
    Failure::Lost(why)
}

fn said(told: &ServerError) -> String {
    format!("{} ({})", told.message, told.code)
}
