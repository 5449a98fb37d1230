//! The two doors, and what comes out of them in one form.

use std::fmt;

use contract::v1::ErrorReason;
use http::Method;
use serde_json::{Value, json};
use test_support::Api;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::operation::Operation;
use crate::grpc;

const UNIMPLEMENTED: u16 = 501;

/// A way into a server, with an organization's key.
pub(crate) enum Door {
    Rest(Api),
    Grpc { channel: Channel, key: String },
}

/// What a call came to: the HTTP status, and the body of a success or what an error says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {:#}", self.status, self.body)
    }
}

impl Outcome {
    /// What no service implements is said by each door's library, in its own words.
    fn unimplemented() -> Self {
        Self {
            status: UNIMPLEMENTED,
            body: Value::Null,
        }
    }
}

impl Door {
    pub(crate) async fn call(&self, operation: &Operation) -> Outcome {
        match self {
            Self::Rest(api) => over_rest(api, operation).await,
            Self::Grpc { channel, key } => {
                let message = operation.message();
                let answer = grpc::call(channel.clone(), operation.rpc(), key, message).await;
                answer.map_or_else(
                    |status| refusal(&status),
                    |message| {
                        let (status, body) = operation.answer(&message);
                        Outcome { status, body }
                    },
                )
            }
        }
    }
}

async fn over_rest(api: &Api, operation: &Operation) -> Outcome {
    let method = Method::try_from(operation.verb()).unwrap();
    let (path, text) = (operation.path(), operation.text());
    let answer = api.send(method, &path, &operation.headers(), text.into()).await;
    let body = match answer.status {
        204 => Value::Null,
        UNIMPLEMENTED => return Outcome::unimplemented(),
        200..300 => answer.json(),
        _ => {
            let mut error = answer.json()["error"].take();
            // Each call has its own.
            let id = error.as_object_mut().unwrap().remove("request_id");
            assert_eq!(id.unwrap(), answer.header("x-request-id"));
            error
        }
    };
    Outcome {
        status: answer.status,
        body,
    }
}

/// What REST says of a gRPC error, by the contract's table.
fn refusal(status: &Status) -> Outcome {
    if status.code() == Code::Unimplemented {
        return Outcome::unimplemented();
    }
    let details = status.get_error_details();
    let reason = details
        .error_info()
        .and_then(|info| ErrorReason::from_name(&info.reason));
    let row = reason
        .unwrap_or_else(|| panic!("a status without a reason: {status:?}"))
        .row();
    assert_eq!(i32::from(status.code()), row.grpc_status, "{status:?}");
    let violations = details
        .bad_request()
        .map(|request| request.field_violations.clone());
    let violations: Vec<Value> = violations
        .unwrap_or_default()
        .iter()
        .map(|violation| json!({ "path": violation.field, "message": violation.description }))
        .collect();
    Outcome {
        status: row.http_status,
        body: json!({ "code": row.code, "message": status.message(), "details": violations }),
    }
}
