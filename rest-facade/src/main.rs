//! A REST facade on a machine of its own: the router over network channels to one or more cores.

use std::error::Error;
use std::future::Future;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use rest_facade::{CoreService, CoreTls, FacadeConfig};
use server::{Limits, Options};
use tikv_jemallocator::Jemalloc;
use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::EnvFilter;

/// Takes less time than the system's, and gives memory back after a burst, which the system's keeps in pieces.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Serves Switchyard's REST API v1 in front of one or more gRPC cores.
#[derive(Debug, Parser)]
#[command(name = "rest-facade", version)]
struct Arguments {
    /// TOML file with these options as keys; `switchyard.toml` of the working directory when it exists.
    #[arg(long, env = "SWITCHYARD_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Addresses of the cores, separated by commas; requests go to them in turn.
    #[arg(long, env = "SWITCHYARD_CORE", value_delimiter = ',', required = true)]
    core: Vec<String>,
    /// PEM file of the authority that signed the cores' certificates; the system's authorities when absent.
    #[arg(long, env = "SWITCHYARD_CORE_TLS_AUTHORITY")]
    core_tls_authority: Option<PathBuf>,
    /// Name in the cores' certificates; the host of each address when absent.
    #[arg(long, env = "SWITCHYARD_CORE_TLS_DOMAIN")]
    core_tls_domain: Option<String>,
    /// Address to listen on.
    #[arg(long, env = "SWITCHYARD_LISTEN", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// PEM file of the server's certificate chain; with --tls-key, HTTPS instead of HTTP.
    #[arg(long, env = "SWITCHYARD_TLS_CERTIFICATE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// PEM file of the certificate's private key.
    #[arg(long, env = "SWITCHYARD_TLS_KEY", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// Largest body of an API request, in bytes.
    #[arg(long, env = "SWITCHYARD_BODY_LIMIT", default_value_t = FacadeConfig::default().body_limit)]
    body_limit: usize,
    /// Largest body of a webhook call, in bytes.
    #[arg(long, env = "SWITCHYARD_WEBHOOK_BODY_LIMIT", default_value_t = FacadeConfig::default().webhook_body_limit)]
    webhook_body_limit: usize,
    /// Whether to believe X-Forwarded-For, behind a proxy of your own.
    #[arg(long, env = "SWITCHYARD_TRUST_PROXY")]
    trust_proxy: bool,
    /// Seconds a core may take for an answer.
    #[arg(long, env = "SWITCHYARD_CALL_TIMEOUT_S", default_value_t = FacadeConfig::default().call_timeout.as_secs())]
    call_timeout_s: u64,
    #[command(flatten)]
    limits: Limits,
    /// Which log lines: a level, or directives such as `info,rest_facade=debug`.
    #[arg(long, env = "SWITCHYARD_LOG", default_value = "info")]
    log: String,
    /// Form of the log on standard error.
    #[arg(long, env = "SWITCHYARD_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = match Arguments::read() {
        Ok(arguments) => arguments,
        Err(configuration::Error::CommandLine(error)) => error.exit(),
        Err(error) => {
            eprintln!("rest-facade: {error}");
            return ExitCode::FAILURE;
        }
    };
    log_to_stderr(EnvFilter::new(&arguments.log), arguments.log_format);
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = &*error, "rest-facade cannot start");
            ExitCode::FAILURE
        }
    }
}

impl Arguments {
    /// Reads flags, environment and file.
    fn read() -> Result<Self, configuration::Error> {
        let given: Vec<_> = std::env::args_os().collect();
        let matches = configuration::read(Self::command(), &[], &given)?;
        Ok(Self::from_arg_matches(&matches)?)
    }
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn Error>> {
    let core = connect(&arguments)?;
    let config = FacadeConfig {
        body_limit: arguments.body_limit,
        webhook_body_limit: arguments.webhook_body_limit,
        trust_forwarded_for: arguments.trust_proxy,
        call_timeout: Duration::from_secs(arguments.call_timeout_s),
        ..FacadeConfig::default()
    };
    let options = Options {
        tls: server_tls(&arguments)?,
        ..Options::new(arguments.limits.clone())
    };
    let shutdown = termination()?;
    let listener = server::bind(arguments.listen)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}", arguments.listen))?;
    tracing::info!(address = %listener.local_addr()?, cores = ?arguments.core, "listening");
    let router = rest_facade::router(core.clone(), config).merge(rest_facade::readiness(core));
    rest_facade::serve(listener, router, options, shutdown).await;
    tracing::info!("stopped");
    Ok(())
}

fn connect(arguments: &Arguments) -> Result<CoreService, Box<dyn Error>> {
    let tls = CoreTls {
        authority: arguments.core_tls_authority.as_deref().map(read).transpose()?,
        domain: arguments.core_tls_domain.clone(),
    };
    let addresses = arguments.core.iter().map(|address| address.trim());
    Ok(CoreService::connect(addresses, &tls)?)
}

fn server_tls(arguments: &Arguments) -> Result<Option<server::Tls>, Box<dyn Error>> {
    let (Some(certificate), Some(key)) = (&arguments.tls_certificate, &arguments.tls_key) else {
        return Ok(None);
    };
    Ok(Some(server::tls_from_pem(&read(certificate)?, &read(key)?)?))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Completes at SIGTERM or SIGINT.
fn termination() -> std::io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("draining");
    })
}

fn log_to_stderr(filter: EnvFilter, format: LogFormat) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A log that cannot be written, on a full disk or to a closed pipe, must not end what it tells of.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match format {
        LogFormat::Text => log.init(),
        LogFormat::Json => log.json().init(),
    }
}
