//! `switchyard serve` and `rest-facade` as processes on ports of their own.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, PoisonError};

use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::admin::Admin;
use crate::api::{Api, until};
use crate::binaries::binary;
use crate::http::HttpClient;
use crate::process::Process;
use crate::{Certificate, TemporaryDirectory};

/// How a server is started.
#[derive(Clone, Default)]
pub struct ServerOptions {
    /// PostgreSQL; SQLite in the data directory when absent.
    pub database_url: Option<String>,
    /// Serve gRPC alone.
    pub no_rest: bool,
    /// TLS on both listeners.
    pub certificate: Option<Certificate>,
    /// Master key of another server whose database this one shares.
    pub master_key_file: Option<PathBuf>,
    /// Further flags.
    pub flags: Vec<String>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
    /// Where its directory is made; the system's temporary directory when absent.
    pub place: Option<PathBuf>,
}

/// A running `switchyard serve`.
pub struct Server {
    options: ServerOptions,
    directory: TemporaryDirectory,
    rest: SocketAddr,
    grpc: SocketAddr,
    process: Mutex<Process>,
}

impl Server {
    /// Starts a server and waits until it is ready.
    ///
    /// # Panics
    /// When it does not get ready; the log says why.
    pub async fn start(options: ServerOptions) -> Self {
        let directory = match &options.place {
            Some(place) => TemporaryDirectory::new_in(place, "server"),
            None => TemporaryDirectory::new("server"),
        };
        let directory = directory.expect("a temporary directory");
        let (rest, grpc) = (free_address(), free_address());
        let process = Mutex::new(launch(&options, &directory, rest, grpc));
        let server = Self {
            options,
            directory,
            rest,
            grpc,
            process,
        };
        server.get_ready().await;
        server
    }

    /// Starts the server again on the same data directory and ports.
    ///
    /// # Panics
    /// When it does not get ready; the log says why.
    pub async fn restart(&mut self) {
        self.restart_unready();
        self.get_ready().await;
    }

    /// As [`Self::restart`], without waiting: it may never get ready.
    pub fn restart_unready(&mut self) {
        self.kill_hard();
        let process = launch(&self.options, &self.directory, self.rest, self.grpc);
        self.process = Mutex::new(process);
    }

    /// As [`Self::restart`], with other environment variables.
    ///
    /// # Panics
    /// When it does not get ready; the log says why.
    pub async fn restart_with(&mut self, environment: Vec<(String, String)>) {
        self.set_environment(environment);
        self.restart().await;
    }

    /// Gives the server other environment variables from its next start on.
    pub fn set_environment(&mut self, environment: Vec<(String, String)>) {
        self.options.environment = environment;
    }

    /// Ends the server at once, as a crash does.
    pub fn kill_hard(&mut self) {
        self.process().kill();
    }

    /// Asks the server to end (SIGTERM) and waits for it.
    ///
    /// # Panics
    /// When it does not end.
    pub async fn terminate(&mut self) -> ExitStatus {
        self.interrupt();
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        let ended = process.wait().await;
        ended.unwrap_or_else(|| panic!("the server does not end:\n{}", self.log()))
    }

    /// Asks the server to end (SIGTERM), without waiting.
    pub fn interrupt(&self) {
        self.signal("TERM");
    }

    /// Stops the server where it is (SIGSTOP), until [`Self::go_on`].
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// Lets a paused server go on (SIGCONT).
    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        process.signal(name);
    }

    /// A caller of REST with the key of the first start.
    ///
    /// # Panics
    /// When there was no first start on this database.
    pub fn first_api(&self) -> Api {
        self.api(Some(&self.data_file("initial-api-key")))
    }

    /// A caller of REST with this key, or with none.
    #[must_use]
    pub fn api(&self, key: Option<&str>) -> Api {
        let tls = self.options.certificate.as_ref().map(|made| made.client.clone());
        Api::new(HttpClient::new(self.rest, tls), key.map(str::to_owned))
    }

    /// The operator.
    ///
    /// # Panics
    /// When the core does not answer.
    pub async fn admin(&self) -> Admin {
        Admin::new(self.channel().await, &self.data_file("operator-token"))
    }

    /// The operator's token.
    pub fn operator_token(&self) -> String {
        self.data_file("operator-token")
    }

    /// A gRPC channel to the core.
    ///
    /// # Panics
    /// When the core does not answer.
    pub async fn channel(&self) -> Channel {
        self.endpoint().connect().await.expect("a connection to the core")
    }

    /// URL of the gRPC listener.
    pub fn grpc_url(&self) -> String {
        match &self.options.certificate {
            None => format!("http://{}", self.grpc),
            Some(_) => format!("https://localhost:{}", self.grpc.port()),
        }
    }

    /// The REST listener.
    pub fn rest_address(&self) -> SocketAddr {
        self.rest
    }

    /// The gRPC listener.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc
    }

    /// URL of the REST listener.
    pub fn rest_url(&self) -> String {
        let scheme = self.options.certificate.as_ref().map_or("http", |_| "https");
        format!("{scheme}://{}", self.rest)
    }

    /// Id of the server's process.
    pub fn pid(&self) -> u32 {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).id()
    }

    /// URL of the database; nothing when it is SQLite in the data directory.
    pub fn database_url(&self) -> Option<&str> {
        self.options.database_url.as_deref()
    }

    /// The data directory.
    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// What the server has logged, its last lines.
    pub fn log(&self) -> String {
        last_lines(&self.directory)
    }

    /// All that the server has written to its standard output and error.
    pub fn whole_log(&self) -> String {
        let log = std::fs::read(self.directory.path().join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    fn endpoint(&self) -> Endpoint {
        let endpoint = Endpoint::from_shared(self.grpc_url()).expect("the core's URL");
        match &self.options.certificate {
            None => endpoint,
            Some(made) => {
                let authority = tonic::transport::Certificate::from_pem(&made.pem);
                let tls = ClientTlsConfig::new().ca_certificate(authority);
                endpoint.tls_config(tls).expect("TLS settings")
            }
        }
    }

    fn data_file(&self, name: &str) -> String {
        let path = self.data_dir().join(name);
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        text.trim().to_owned()
    }

    fn process(&mut self) -> &mut Process {
        self.process.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the server ended, if it has.
    pub fn ended(&self) -> Option<ExitStatus> {
        self.process
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .ended()
    }

    /// Waits until the server is ready.
    ///
    /// # Panics
    /// When it does not get ready; the log says why.
    pub async fn get_ready(&self) {
        let ready = until(async || {
            if let Some(status) = self.ended() {
                panic!("the server has ended with {status}:\n{}", self.log());
            }
            self.is_ready().await.then_some(())
        });
        if ready.await.is_none() {
            panic!("the server does not get ready:\n{}", self.log());
        }
    }

    async fn is_ready(&self) -> bool {
        if !self.options.no_rest {
            return is_ready(&self.api(None)).await;
        }
        let Ok(channel) = self.endpoint().connect().await else {
            return false;
        };
        let answer = HealthClient::new(channel)
            .check(HealthCheckRequest::default())
            .await;
        answer.is_ok_and(|answer| answer.into_inner().status() == ServingStatus::Serving)
    }
}

/// While it lives, a panic of its thread shows what the server logged.
pub struct ShowLog<'a>(pub &'a Server);

impl Drop for ShowLog<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("---- the server's log ----\n{}", self.0.log());
        }
    }
}

/// A running `rest-facade`.
pub struct Facade {
    directory: TemporaryDirectory,
    address: SocketAddr,
    arguments: Vec<String>,
    process: Process,
}

impl Facade {
    /// Starts a facade before these cores and waits until one of them answers.
    ///
    /// # Panics
    /// When it does not get ready; the log says why.
    pub async fn start(cores: &[&Server]) -> Self {
        Self::start_with(cores, &[]).await
    }

    /// As [`Self::start`], with further flags.
    ///
    /// # Panics
    /// When it does not get ready; the log says why.
    pub async fn start_with(cores: &[&Server], flags: &[&str]) -> Self {
        Self::launch(cores, |_directory, address, cores| {
            let own = ["--listen", address, "--core", cores];
            own.iter().chain(flags).map(|&flag| flag.to_owned()).collect()
        })
        .await
    }

    /// As [`Self::start`], but what it needs to know stands in the `switchyard.toml` of its directory.
    ///
    /// # Panics
    /// When it does not get ready; the log says why.
    pub async fn start_from_file(cores: &[&Server]) -> Self {
        Self::launch(cores, |directory, address, cores| {
            let text = format!("listen = \"{address}\"\ncore = \"{cores}\"\nlog-format = \"json\"\n");
            std::fs::write(directory.join("switchyard.toml"), text).expect("a written file");
            Vec::new()
        })
        .await
    }

    async fn launch(cores: &[&Server], configure: impl FnOnce(&Path, &str, &str) -> Vec<String>) -> Self {
        let directory = TemporaryDirectory::new("facade").expect("a temporary directory");
        let address = free_address();
        let urls: Vec<String> = cores.iter().map(|core| core.grpc_url()).collect();
        let arguments = configure(directory.path(), &address.to_string(), &urls.join(","));
        let process = launch_facade(&arguments, &directory);
        let facade = Self {
            directory,
            address,
            arguments,
            process,
        };
        facade.get_ready().await;
        facade
    }

    /// Asks the facade to end (SIGTERM), waits for it, and starts it again.
    ///
    /// # Panics
    /// When it does not end, or not in order, or does not get ready.
    pub async fn restart(&mut self) {
        self.process.signal("TERM");
        let ended = self.process.wait().await;
        assert!(
            ended.is_some_and(|status| status.success()),
            "{ended:?}: {}",
            self.log()
        );
        self.process = launch_facade(&self.arguments, &self.directory);
        self.get_ready().await;
    }

    async fn get_ready(&self) {
        let ready = until(async || is_ready(&self.api(None)).await.then_some(()));
        if ready.await.is_none() {
            panic!("the facade does not get ready:\n{}", self.log());
        }
    }

    /// What the facade has logged, its last lines.
    pub fn log(&self) -> String {
        last_lines(&self.directory)
    }

    /// Its listener.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A caller with this key, or with none.
    #[must_use]
    pub fn api(&self, key: Option<&str>) -> Api {
        Api::new(HttpClient::new(self.address, None), key.map(str::to_owned))
    }
}

async fn is_ready(api: &Api) -> bool {
    let answer = api
        .try_send(http::Method::GET, "/readyz", &[], bytes::Bytes::new())
        .await;
    answer.is_ok_and(|answer| answer.status == 200)
}

/// A port that nothing listens on now.
pub(crate) fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    listener.local_addr().expect("an address")
}

fn launch(
    options: &ServerOptions,
    directory: &TemporaryDirectory,
    rest: SocketAddr,
    grpc: SocketAddr,
) -> Process {
    let shown = |path: &PathBuf| path.display().to_string();
    let mut arguments: Vec<String> = ["serve", "--data-dir", "data"].map(str::to_owned).into();
    arguments.extend(["--rest-listen".to_owned(), rest.to_string()]);
    arguments.extend(["--grpc-listen".to_owned(), grpc.to_string()]);
    if let Some(url) = &options.database_url {
        arguments.extend(["--database-url".to_owned(), url.clone()]);
    }
    if let Some(file) = &options.master_key_file {
        arguments.extend(["--master-key-file".to_owned(), shown(file)]);
    }
    if let Some(made) = &options.certificate {
        arguments.extend(["--tls-certificate".to_owned(), shown(&made.certificate)]);
        arguments.extend(["--tls-key".to_owned(), shown(&made.key)]);
    }
    if options.no_rest {
        arguments.push("--no-rest".to_owned());
    }
    arguments.extend(options.flags.iter().cloned());
    let log = directory.path().join("log");
    let environment = &options.environment;
    Process::start(
        &binary("switchyard"),
        &arguments,
        environment,
        directory.path(),
        &log,
    )
}

fn launch_facade(arguments: &[String], directory: &TemporaryDirectory) -> Process {
    let log = directory.path().join("log");
    Process::start(&binary("rest-facade"), arguments, &[], directory.path(), &log)
}

fn last_lines(directory: &TemporaryDirectory) -> String {
    const SHOWN: usize = 80;
    let log = std::fs::read_to_string(directory.path().join("log")).unwrap_or_default();
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(SHOWN)..].join("\n")
}
