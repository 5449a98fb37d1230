//! What the operator says: flags, environment variables and the keys of `switchyard.toml`, in this order of precedence.
//!
//! The flags below are the one list; the environment's names and the file's keys follow from them. The only module
//! that reads the environment: the master key comes from there and is neither a flag, which other users of the machine
//! could see, nor a key of the file.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use ipnet::IpNet;
use server::Limits;
use wire::api_key::is_region;

use crate::admin::AdminCommand;
use crate::authoring::ManifestCommand;
use crate::outbound::network;
use crate::secret::{MASTER_KEY_VARIABLE, Secret};
use crate::store::DatabaseUrl;

/// Switchyard: durable workflow automation, driven by API.
///
/// Without a command it serves: the gRPC core and REST v1 in one process. The first start on an empty data directory
/// makes an organization, an API key and an operator token, and prints how to call the API.
#[derive(Parser)]
#[command(name = "switchyard", version, args_conflicts_with_subcommands = true)]
pub struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of `serve`, which is what happens without a command.
    #[command(flatten)]
    pub serve: ServeOptions,
}

/// What to do.
#[derive(Subcommand)]
pub enum Command {
    /// Serve gRPC and REST (what happens without a command, too).
    Serve(Box<ServeOptions>),
    /// Administer a running server: organizations, plans, users, keys.
    Admin(Box<AdminCommand>),
    /// Write manifests of apps: check them and run their tests, without a server.
    #[command(subcommand)]
    Manifest(ManifestCommand),
}

/// Options of `serve`.
#[derive(Args, Clone)]
pub struct ServeOptions {
    /// TOML file with these options as keys; `switchyard.toml` of the working directory when it exists.
    #[arg(long, env = "SWITCHYARD_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory for the SQLite database and the secrets; made when it is missing.
    #[arg(
        long,
        env = "SWITCHYARD_DATA_DIR",
        value_name = "DIR",
        default_value = "./data"
    )]
    pub data_dir: PathBuf,
    /// Address for REST v1, webhooks, /healthz, /readyz and /metrics.
    #[arg(
        long,
        env = "SWITCHYARD_REST_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080"
    )]
    pub rest_listen: SocketAddr,
    /// Address for gRPC, its health service and reflection.
    #[arg(
        long,
        env = "SWITCHYARD_GRPC_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:50051"
    )]
    pub grpc_listen: SocketAddr,
    /// Database: `postgres://…` to scale out; SQLite in the data directory when absent.
    #[arg(
        long,
        env = "SWITCHYARD_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub database_url: Option<Secret>,
    /// Region of this server; part of every API key.
    #[arg(long, env = "SWITCHYARD_REGION", value_name = "NAME", default_value = "local", value_parser = region)]
    pub region: String,
    /// URL under which callers reach REST; webhook URLs begin with it. From --rest-listen when absent.
    #[arg(long, env = "SWITCHYARD_BASE_URL", value_name = "URL")]
    pub base_url: Option<String>,
    /// Other regions and their base URLs, `eu1=https://…,us1=https://…`: their keys are sent there (421).
    #[arg(long, env = "SWITCHYARD_REGIONS", value_name = "REGION=URL", value_delimiter = ',', value_parser = other_region)]
    pub regions: Vec<(String, String)>,
    /// Private addresses that nodes may call all the same, `127.0.0.0/8,10.1.2.3/32`.
    #[arg(
        long,
        env = "SWITCHYARD_OUTBOUND_ALLOW",
        value_name = "NETWORK",
        value_delimiter = ',',
        value_parser = network
    )]
    pub outbound_allow: Vec<IpNet>,
    /// Serve the gRPC core alone, for facades on machines of their own.
    #[arg(long, env = "SWITCHYARD_NO_REST")]
    pub no_rest: bool,
    /// File with the master key (64 hexadecimal digits) that wraps stored secrets; all nodes need the same one.
    /// `master-key` in the data directory when absent, made at the first start. The environment variable
    /// SWITCHYARD_MASTER_KEY may hold the key itself instead: 32 bytes in hexadecimal or Base64.
    #[arg(long, env = "SWITCHYARD_MASTER_KEY_FILE", value_name = "FILE")]
    pub master_key_file: Option<PathBuf>,
    /// What the environment variable SWITCHYARD_MASTER_KEY holds.
    #[arg(skip)]
    pub master_key: Option<Secret>,
    /// Token that AdminService asks for; the file `operator-token` of the data directory when absent.
    #[arg(
        long,
        env = "SWITCHYARD_OPERATOR_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    pub operator_token: Option<Secret>,
    /// Certificate chain (PEM) for TLS on both listeners.
    #[arg(
        long,
        env = "SWITCHYARD_TLS_CERTIFICATE",
        value_name = "FILE",
        requires = "tls_key"
    )]
    pub tls_certificate: Option<PathBuf>,
    /// Private key (PEM) of the certificate.
    #[arg(
        long,
        env = "SWITCHYARD_TLS_KEY",
        value_name = "FILE",
        requires = "tls_certificate"
    )]
    pub tls_key: Option<PathBuf>,
    /// Largest body of a REST request, in bytes.
    #[arg(long, env = "SWITCHYARD_BODY_LIMIT", value_name = "BYTES", default_value_t = 1 << 20)]
    pub body_limit: usize,
    /// Largest body of a webhook call, in bytes.
    #[arg(long, env = "SWITCHYARD_WEBHOOK_BODY_LIMIT", value_name = "BYTES", default_value_t = 5 << 20)]
    pub webhook_body_limit: usize,
    /// Whether to believe X-Forwarded-For, behind a proxy of your own.
    #[arg(long, env = "SWITCHYARD_TRUST_PROXY")]
    pub trust_proxy: bool,
    /// Largest message that gRPC clients may send, in bytes; a webhook's call may have 64 MiB.
    #[arg(long, env = "SWITCHYARD_MESSAGE_LIMIT", value_name = "BYTES", default_value_t = 4 << 20)]
    pub message_limit: usize,
    /// Largest message that gRPC clients are sent, in bytes.
    #[arg(long, env = "SWITCHYARD_ANSWER_LIMIT", value_name = "BYTES", default_value_t = 256 << 20)]
    pub answer_limit: usize,
    /// Most requests at a time on one gRPC connection, which may be that of a facade with all its clients.
    #[arg(long, env = "SWITCHYARD_GRPC_MAX_STREAMS", value_name = "COUNT", default_value_t = 8_192,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub grpc_max_streams: u32,
    /// What clients may ask of the listeners.
    #[command(flatten)]
    pub limits: Limits,
    /// How long, in milliseconds, a silent node keeps its runs before others take them over.
    #[arg(long, env = "SWITCHYARD_LEASE_MS", value_name = "MS", default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1_000..=600_000))]
    pub lease_ms: u64,
    /// A run is failed as what processes die of once so many were lost while they executed it, the last of them while it
    /// was the only suspect there.
    #[arg(long, env = "SWITCHYARD_CRASH_LIMIT", value_name = "COUNT", default_value_t = 3,
        value_parser = clap::value_parser!(i64).range(1..=1_000))]
    pub crash_limit: i64,
    /// Processes that run JavaScript of users at once; twice the cores, at least 8, when absent. An organization gets at
    /// most a quarter of them, at least 2.
    #[arg(long, env = "SWITCHYARD_CODE_WORKERS", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(2..=1_024))]
    pub code_workers: Option<u16>,
    /// The commit to die at, for tests. Not in release builds.
    #[cfg(debug_assertions)]
    #[arg(long, env = "SWITCHYARD_ABORT_AT", value_name = "FAILPOINT", hide = true)]
    pub abort_at: Option<crate::failpoint::Failpoint>,
    /// Which log lines: a level, or directives such as `info,core_service=debug`.
    #[arg(long, env = "SWITCHYARD_LOG", value_name = "FILTER", default_value = "info")]
    pub log: String,
    /// Form of log lines.
    #[arg(long, env = "SWITCHYARD_LOG_FORMAT", value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
    pub log_format: String,
}

/// This server's region, and where the keys of others belong.
pub struct Regions {
    /// This server's region.
    pub own: String,
    /// Base URLs of the others.
    pub others: BTreeMap<String, String>,
}

/// Options that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A flag, a variable or the file is wrong.
    #[error(transparent)]
    Options(#[from] configuration::Error),
    /// The master key is given and its file, too.
    #[error(
        "{MASTER_KEY_VARIABLE} and --master-key-file (SWITCHYARD_MASTER_KEY_FILE) are both given; give one of them"
    )]
    TwoMasterKeys,
}

impl CommandLine {
    /// Reads flags, environment and file.
    ///
    /// # Errors
    /// When one of them is wrong, or help was asked for (which clap tells as an error, too).
    #[expect(
        clippy::disallowed_methods,
        reason = "what follows the rules for all variables is read by clap"
    )]
    pub fn read(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Self, ConfigError> {
        let arguments: Vec<_> = arguments.into_iter().collect();
        let matches = configuration::read(CommandLine::command(), &["serve"], &arguments)?;
        let line = CommandLine::from_arg_matches(&matches).map_err(configuration::Error::from)?;
        line.with_master_key(std::env::var(MASTER_KEY_VARIABLE).ok())
    }

    fn with_master_key(mut self, key: Option<String>) -> Result<Self, ConfigError> {
        let options = match &mut self.command {
            None => &mut self.serve,
            Some(Command::Serve(options)) => &mut **options,
            Some(Command::Admin(_) | Command::Manifest(_)) => return Ok(self),
        };
        options.master_key = key.map(Secret::from);
        match (&options.master_key, &options.master_key_file) {
            (Some(_), Some(_)) => Err(ConfigError::TwoMasterKeys),
            _ => Ok(self),
        }
    }
}

impl ServeOptions {
    /// Where the database is.
    ///
    /// # Errors
    /// When the URL is not one.
    pub fn database(&self) -> Result<DatabaseUrl, crate::store::StoreError> {
        match &self.database_url {
            Some(url) => url.expose().parse(),
            None => Ok(DatabaseUrl::in_directory(&self.data_dir)),
        }
    }

    /// The URL under which callers reach REST, without a slash at its end.
    pub fn base_url(&self) -> String {
        let scheme = if self.tls_certificate.is_some() {
            "https"
        } else {
            "http"
        };
        let given = self
            .base_url
            .clone()
            .unwrap_or_else(|| format!("{scheme}://{}", self.rest_listen));
        given.trim_end_matches('/').to_owned()
    }

    /// The regions.
    pub fn regions(&self) -> Regions {
        Regions {
            own: self.region.clone(),
            others: self.regions.iter().cloned().collect(),
        }
    }
}

fn region(text: &str) -> Result<String, String> {
    match is_region(text) {
        true => Ok(text.to_owned()),
        false => Err("a region has 1 to 32 lower-case letters, digits and dashes".to_owned()),
    }
}

fn other_region(text: &str) -> Result<(String, String), String> {
    let (name, url) = text.split_once('=').ok_or("must be REGION=URL")?;
    Ok((region(name)?, url.trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn read(arguments: &[&str]) -> Result<CommandLine, ConfigError> {
        CommandLine::read(
            std::iter::once("switchyard")
                .chain(arguments.iter().copied())
                .map(Into::into),
        )
    }

    #[test]
    fn serving_is_what_happens_without_a_command() {
        let line = read(&["--rest-listen", "127.0.0.1:1"]).unwrap();
        assert!(line.command.is_none());
        assert_eq!(line.serve.base_url(), "http://127.0.0.1:1");
        let Some(Command::Serve(serve)) = read(&["serve", "--region", "eu1"]).unwrap().command else {
            panic!("serve is a command");
        };
        assert_eq!(serve.region, "eu1");
    }

    #[test]
    fn a_file_speaks_of_serving_with_and_without_the_word() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(
            &path,
            "region = \"eu1\"\nregions = [\"us1=https://us1.test\"]\n\
             outbound-allow = [\"127.0.0.0/8\", \"fd00::1\"]\n",
        )
        .unwrap();
        let path = path.to_str().unwrap();
        let line = read(&["--config", path]).unwrap();
        assert_eq!(line.serve.region, "eu1");
        assert_eq!(line.serve.regions().others["us1"], "https://us1.test");
        let allowed = line.serve.outbound_allow.iter().map(ToString::to_string);
        assert_eq!(allowed.collect::<Vec<_>>(), ["127.0.0.0/8", "fd00::1/128"]);
        let Some(Command::Serve(serve)) = read(&["serve", "--config", path]).unwrap().command else {
            panic!("serve is a command");
        };
        assert_eq!(serve.region, "eu1");
    }

    #[test]
    fn limits_are_options_like_others() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, "max-connections = 7\nbody-timeout-ms = 250\n").unwrap();
        let line = read(&["--config", path.to_str().unwrap(), "--max-requests", "9"]).unwrap();
        let limits = line.serve.limits;
        assert_eq!((limits.max_connections, limits.max_requests), (7, 9));
        assert_eq!(limits.body_timeout.as_millis(), 250);
        assert_eq!(limits.header_timeout, Limits::default().header_timeout);
        for wrong in [
            ["--max-connections", "0"],
            ["--idle-timeout-ms", "0"],
            ["--max-header-bytes", "100"],
        ] {
            assert!(read(&wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn each_limit_is_documented_with_its_default() {
        let document = include_str!("../../docs/limits.md");
        let command = Limits::augment_args(clap::Command::new("limits"));
        for flag in command.get_arguments() {
            let name = format!("--{}", flag.get_long().unwrap());
            let line = document
                .lines()
                .find(|line| line.starts_with('|') && line.contains(&name));
            let line = line.unwrap_or_else(|| panic!("docs/limits.md has no row for {name}"));
            let default = flag.get_default_values()[0].to_str().unwrap();
            assert!(
                line.replace(',', "").contains(default),
                "{name} is {default}: {line}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        assert!(read(&["--config", "/nowhere.toml"]).is_err());
        assert!(read(&["--region", "Ä"]).is_err());
        assert!(read(&["--lease-ms", "1"]).is_err());
        assert!(read(&["--crash-limit", "0"]).is_err());
        assert!(read(&["--outbound-allow", "127.0.0.0/8,localhost"]).is_err());
    }

    #[test]
    fn the_master_key_has_one_source() {
        let key = || Some("ab".repeat(32));
        let line = read(&["serve"]).unwrap().with_master_key(key()).unwrap();
        let Some(Command::Serve(serve)) = line.command else {
            panic!("serve is a command");
        };
        assert!(serve.master_key.is_some());
        for arguments in [
            &["--master-key-file", "f"][..],
            &["serve", "--master-key-file", "f"],
        ] {
            let refused = read(arguments).unwrap().with_master_key(key()).err().unwrap();
            assert!(matches!(refused, ConfigError::TwoMasterKeys));
            assert!(!refused.to_string().contains("abab"), "{refused}");
            assert!(read(arguments).unwrap().with_master_key(None).is_ok());
        }
    }

    #[test]
    fn the_options_are_consistent() {
        CommandLine::command().debug_assert();
    }
}
