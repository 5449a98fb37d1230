//! What clients may ask of a listener: the one list of limits, which are flags of both binaries.

use std::time::Duration;

use clap::{Args, FromArgMatches as _};

/// What clients may ask of a listener. `docs/limits.md` says what they see beyond.
#[derive(Debug, Clone, Args)]
pub struct Limits {
    /// Most connections of a listener at a time; further ones wait.
    #[arg(long, env = "SWITCHYARD_MAX_CONNECTIONS", value_name = "COUNT", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_connections: u32,
    /// Most requests in flight in the process, streams included; further ones are refused (503, UNAVAILABLE).
    #[arg(long, env = "SWITCHYARD_MAX_REQUESTS", value_name = "COUNT", default_value_t = 16_384,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub max_requests: u32,
    /// Most memory for the bodies of requests in flight in the process, in MiB; beyond it they are refused (503,
    /// UNAVAILABLE).
    #[arg(long, env = "SWITCHYARD_BODY_MEMORY_MIB", value_name = "MIB", default_value_t = 256,
        value_parser = clap::value_parser!(u32).range(1..=1_048_576))]
    pub body_memory_mib: u32,
    /// How long, in milliseconds, a client may take for a TLS handshake or a request's head.
    #[arg(long = "header-timeout-ms", env = "SWITCHYARD_HEADER_TIMEOUT_MS", value_name = "MS", default_value = "30000",
        value_parser = milliseconds)]
    pub header_timeout: Duration,
    /// How long, in milliseconds, a client may take for a request's body.
    #[arg(long = "body-timeout-ms", env = "SWITCHYARD_BODY_TIMEOUT_MS", value_name = "MS", default_value = "60000",
        value_parser = milliseconds)]
    pub body_timeout: Duration,
    /// How long, in milliseconds, a client may take nothing of an answer that is there.
    #[arg(long = "write-timeout-ms", env = "SWITCHYARD_WRITE_TIMEOUT_MS", value_name = "MS", default_value = "30000",
        value_parser = milliseconds)]
    pub write_timeout: Duration,
    /// How long, in milliseconds, a connection may have no request in flight.
    #[arg(long = "idle-timeout-ms", env = "SWITCHYARD_IDLE_TIMEOUT_MS", value_name = "MS", default_value = "120000",
        value_parser = milliseconds)]
    pub idle_timeout: Duration,
    /// Most bytes of a request's head, at least 8,192.
    #[arg(long, env = "SWITCHYARD_MAX_HEADER_BYTES", value_name = "BYTES", default_value_t = 64 * 1024,
        value_parser = clap::value_parser!(u32).range(8 * 1024..=1024 * 1024))]
    pub max_header_bytes: u32,
    /// Most requests at a time on one HTTP/2 connection.
    #[arg(long, env = "SWITCHYARD_HTTP2_MAX_STREAMS", value_name = "COUNT", default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub http2_max_streams: u32,
    /// Most requests of one HTTP/2 connection that the client has taken back before the server looked at them; beyond
    /// it the connection is closed.
    #[arg(
        long,
        env = "SWITCHYARD_HTTP2_MAX_PENDING_RESETS",
        value_name = "COUNT",
        default_value_t = 20
    )]
    pub http2_max_pending_resets: u16,
    /// Most streams that the server resets because of the client's errors while an HTTP/2 connection lasts; beyond it
    /// the connection is closed.
    #[arg(
        long,
        env = "SWITCHYARD_HTTP2_MAX_ERROR_RESETS",
        value_name = "COUNT",
        default_value_t = 1_000
    )]
    pub http2_max_error_resets: u16,
    /// How often, in milliseconds, an HTTP/2 client is asked whether it lives.
    #[arg(long = "http2-ping-interval-ms", env = "SWITCHYARD_HTTP2_PING_INTERVAL_MS", value_name = "MS",
        default_value = "30000", value_parser = milliseconds)]
    pub http2_ping_interval: Duration,
    /// How long, in milliseconds, it may take to say so.
    #[arg(long = "http2-ping-timeout-ms", env = "SWITCHYARD_HTTP2_PING_TIMEOUT_MS", value_name = "MS",
        default_value = "20000", value_parser = milliseconds)]
    pub http2_ping_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let command = Self::augment_args(clap::Command::new("limits"));
        // Not from the environment, which is read once, with all other options.
        let command = command.mut_args(|flag| flag.env(None::<&str>));
        let matches = command.try_get_matches_from(["limits"]);
        matches
            .and_then(|matches| Self::from_arg_matches(&matches))
            .unwrap_or_else(|error| unreachable!("each limit has a default: {error}"))
    }
}

/// A time of at least one millisecond and at most a day.
fn milliseconds(text: &str) -> Result<Duration, String> {
    const DAY: u64 = 86_400_000;
    match text.parse() {
        Ok(number) if (1..=DAY).contains(&number) => Ok(Duration::from_millis(number)),
        _ => Err(format!("must be a whole number from 1 to {DAY}")),
    }
}
