//! `switchyard`: the core and REST v1 in one process, and the operator's commands.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use core_service::Core;
use core_service::bootstrap::FirstKey;
use core_service::config::{Command, CommandLine, ConfigError, ServeOptions};
use rest_facade::{CoreService, FacadeConfig};
use tikv_jemallocator::Jemalloc;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing_subscriber::EnvFilter;

/// Takes less time than the system's, and gives memory back after a burst, which the system's keeps in pieces.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// How long requests in flight may take after SIGTERM.
const DRAIN_REQUESTS: Duration = Duration::from_secs(4);
/// How long running steps may take after that; together well below the ten seconds of the contract.
const DRAIN_RUNS: Duration = Duration::from_secs(4);

fn main() -> ExitCode {
    if let Some(ended) = core_service::sandbox::worker::main(std::env::args_os().skip(1)) {
        return ended;
    }
    let command_line = match CommandLine::read(std::env::args_os()) {
        Ok(command_line) => command_line,
        Err(ConfigError::Options(configuration::Error::CommandLine(error))) => error.exit(),
        Err(error) => return fail(&error),
    };
    let ran = tokio::runtime::Runtime::new()
        .map_err(Into::into)
        .and_then(|runtime| runtime.block_on(run(command_line)));
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&*error),
    }
}

fn fail(error: &dyn Error) -> ExitCode {
    eprintln!("switchyard: {error}");
    let mut cause = error.source();
    while let Some(next) = cause {
        eprintln!("  because {next}");
        cause = next.source();
    }
    ExitCode::FAILURE
}

async fn run(command_line: CommandLine) -> Result<(), Box<dyn Error>> {
    match command_line.command {
        None => serve(command_line.serve).await,
        Some(Command::Serve(options)) => serve(*options).await,
        Some(Command::Admin(command)) => {
            println!("{}", command.run().await?);
            Ok(())
        }
        Some(Command::Manifest(command)) => {
            println!("{}", command.run()?);
            Ok(())
        }
    }
}

async fn serve(options: ServeOptions) -> Result<(), Box<dyn Error>> {
    log_to_stderr(&options)?;
    let (core, first_key) = Core::open(&options).await?;
    let shutdown = shutdown(&core)?;
    let listening = server::Options {
        tls: tls(&options)?,
        drain_timeout: DRAIN_REQUESTS,
        ..server::Options::new(options.limits.clone())
    };
    let grpc_listener = listen(options.grpc_listen).await?;
    let rest_listener = if options.no_rest {
        None
    } else {
        Some(listen(options.rest_listen).await?)
    };
    tracing::info!(grpc = %options.grpc_listen, rest = rest_listener.is_some(), "serving");
    if let Some(first_key) = &first_key {
        greet(&options, first_key);
    }
    let announce = async {
        wait(shutdown.clone()).await;
        core.announce_shutdown().await;
    };
    let mut for_grpc = listening.clone();
    for_grpc.limits.http2_max_streams = options.grpc_max_streams;
    let grpc = core.serve_grpc(grpc_listener, for_grpc, wait(shutdown.clone()));
    let rest = serve_rest(&core, &options, rest_listener, listening, wait(shutdown.clone()));
    tokio::join!(grpc, rest, announce);
    core.drain(DRAIN_RUNS).await;
    tracing::info!("stopped");
    match core.is_broken() {
        true => Err("a worker of the runtime panicked; the log says which".into()),
        false => Ok(()),
    }
}

async fn serve_rest(
    core: &Core,
    options: &ServeOptions,
    listener: Option<TcpListener>,
    listening: server::Options,
    shutdown: impl Future<Output = ()>,
) {
    let Some(listener) = listener else { return };
    let config = FacadeConfig {
        body_limit: options.body_limit,
        webhook_body_limit: options.webhook_body_limit,
        trust_forwarded_for: options.trust_proxy,
        ..FacadeConfig::default()
    };
    let router =
        rest_facade::router(CoreService::in_process(core.service()), config).merge(core.operations());
    rest_facade::serve(listener, router, listening, shutdown).await;
}

async fn listen(address: std::net::SocketAddr) -> Result<TcpListener, String> {
    server::bind(address)
        .await
        .map_err(|error| format!("cannot listen on {address}: {error}"))
}

fn tls(options: &ServeOptions) -> Result<Option<server::Tls>, Box<dyn Error>> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    match (&options.tls_certificate, &options.tls_key) {
        (Some(certificate), Some(key)) => Ok(Some(server::tls_from_pem(&read(certificate)?, &read(key)?)?)),
        _ => Ok(None),
    }
}

/// Becomes true at SIGTERM, at SIGINT, and when the core cannot go on.
fn shutdown(core: &Core) -> std::io::Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let core = core.clone();
    let (sender, receiver) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = core.broken() => {}
        }
        tracing::info!("draining");
        let _ = sender.send(true);
    });
    Ok(receiver)
}

async fn wait(mut shutdown: watch::Receiver<bool>) {
    // The sender lives until it has sent.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

/// Tells who just started a server on an empty database how to call it.
fn greet(options: &ServeOptions, first: &FirstKey) {
    let (base_url, key) = (options.base_url(), first.key.expose());
    println!("Switchyard is ready. This is the first start, so here is a key with all scopes:");
    println!();
    println!("  {key}");
    println!();
    println!("It also stands in {}. Try:", first.file.display());
    println!();
    println!("  curl -H 'Authorization: Bearer {key}' {base_url}/api/v1/workflows");
    println!(
        "  grpcurl -plaintext -H 'authorization: Bearer {key}' {} list",
        options.grpc_listen
    );
    println!();
}

fn log_to_stderr(options: &ServeOptions) -> Result<(), Box<dyn Error>> {
    let filter = EnvFilter::try_new(&options.log)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A log that cannot be written, on a full disk or to a closed pipe, must not end what it tells of.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    match options.log_format.as_str() {
        "json" => log.json().init(),
        _ => log.init(),
    }
    Ok(())
}
