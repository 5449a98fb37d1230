//! The table of errors; its rows stand in `errors.proto`.

/// What an error looks like on the wire.
#[derive(Debug)]
pub struct Row {
    /// The reason in `google.rpc.ErrorInfo`.
    pub name: &'static str,
    /// The machine code in REST's `error.code`.
    pub code: &'static str,
    /// The HTTP status.
    pub http_status: u16,
    /// The gRPC status code.
    pub grpc_status: i32,
}

/// `google.rpc.ErrorInfo.domain` of every error.
pub const DOMAIN: &str = "switchyard";

/// Key in `google.rpc.ErrorInfo.metadata` that holds the right region's address.
pub const BASE_URL: &str = "base_url";

/// Key in `google.rpc.ErrorInfo.metadata` that holds the run an error is about.
pub const RUN_ID: &str = "run_id";
