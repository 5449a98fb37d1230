//! The Switchyard core: the contract's gRPC services over a durable runtime and a database.
//!
//! [`Core::open`] makes one from options, [`Core::service`] is its way in for this process, [`Core::serve_grpc`] the one
//! for the network; both pass the same access layer. Deliberately absent: REST, which is the facade's.

pub mod admin;
pub mod auth;
pub mod authoring;
pub mod bootstrap;
pub mod catalog;
pub mod clock;
pub mod config;
pub mod connectors;
pub mod credentials;
pub mod error;
pub mod failpoint;
pub mod form;
pub mod functions;
pub mod id;
pub mod javascript;
pub mod listener;
pub mod lookups;
pub mod metrics;
pub mod native;
pub mod nodes;
pub mod operations;
pub mod outbound;
pub mod pages;
pub mod people;
pub mod registrations;
pub mod retention;
pub mod runtime;
pub mod sandbox;
pub mod secret;
pub mod services;
pub mod store;
pub mod structure;
pub mod table;
pub mod triggers;
pub mod turns;
pub mod variables;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use server::Options;
use tokio::net::TcpListener;
use tonic::service::Routes;
use tower::Layer as _;

use crate::auth::{Access, AccessLayer, Gate};
use crate::bootstrap::{BootstrapError, FirstKey};
use crate::catalog::Catalog;
use crate::config::ServeOptions;
use crate::connectors::{AppFileError, Apps};
use crate::credentials::Credentials;
use crate::functions::WithFunctions;
use crate::metrics::Metrics;
use crate::nodes::app_caller::AppCaller;
use crate::nodes::http::HttpCaller;
use crate::nodes::native::NativeCaller;
use crate::nodes::{Registry, RunWorkflow};
use crate::operations::Health;
use crate::outbound::Outbound;
use crate::people::People;
use crate::registrations::Registrations;
use crate::retention::{Retention, RetentionConfig};
use crate::runtime::{NoSurroundings, Runtime, RuntimeConfig, RuntimeError};
use crate::sandbox::{Sandbox, SandboxConfig, SandboxError};
use crate::services::{AppTargets, MessageLimits, Services, WebhookTargets};
use crate::store::{Store, StoreError};
use crate::triggers::{Triggers, WorkflowCalls};
use crate::variables::{Variables, WithVariables};

/// Largest question that reflection is asked.
const MAX_QUESTION_BYTES: usize = 64 << 10;

/// How long a shutdown waits for tokens that are being fetched.
const TOKENS_SETTLE: Duration = Duration::from_secs(1);

/// A running core.
#[derive(Clone)]
pub struct Core {
    store: Store,
    runtime: Runtime,
    http: HttpCaller,
    routes: Routes,
    access: AccessLayer,
    metrics: Metrics,
    health: Health,
}

/// A core that cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Secrets, data directory or first organization.
    #[error(transparent)]
    Bootstrap(#[from] BootstrapError),
    /// The database.
    #[error("the database cannot be opened: {0}")]
    Store(#[from] StoreError),
    /// The runtime.
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// The processes for user code.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// An app of the catalog.
    #[error(transparent)]
    Manifest(#[from] AppFileError),
    /// gRPC reflection.
    #[error("the descriptors cannot be served")]
    Reflection(#[from] tonic_reflection::server::Error),
}

impl Core {
    /// Opens the database, recovers its runs and starts driving them. On an empty database it also founds an
    /// organization, whose key it gives.
    ///
    /// # Errors
    /// When something it needs cannot be used.
    pub async fn open(options: &ServeOptions) -> Result<(Self, Option<FirstKey>), OpenError> {
        #[cfg(debug_assertions)]
        if let Some(failpoint) = options.abort_at {
            failpoint::arm(failpoint);
        }
        bootstrap::make_data_directory(&options.data_dir)?;
        let store = Store::open(&options.database()?).await?;
        let secrets = bootstrap::secrets(options, &store).await?;
        let first_key = bootstrap::first_start(options, &store, &secrets.hasher).await?;
        let sandbox = Sandbox::start(sandbox_config(options)).await?;
        let catalog = Catalog::new(store.clone(), Apps::built_in()?);
        let outbound = Outbound::new(&options.outbound_allow);
        let credentials = Credentials::new(store.clone(), secrets.vault.clone(), catalog.clone());
        let http = HttpCaller::new(outbound.clone(), credentials.clone(), store.clone());
        let app_caller = AppCaller::new(http.clone(), NativeCaller::new(&outbound));
        let config = RuntimeConfig {
            lease: Duration::from_millis(options.lease_ms),
            crash_limit: options.crash_limit,
            ..RuntimeConfig::default()
        };
        let variables = Variables::new(store.clone(), secrets.vault.clone());
        let mut registry = Registry::new();
        registry.add_data_kinds(&store, &variables);
        registry.add_request_kinds(&catalog, &app_caller);
        let calls = WorkflowCalls::default();
        registry.add_executed(RunWorkflow, Arc::new(calls.clone()));
        registry.add_code_kinds(&sandbox);
        let registry = Arc::new(registry);
        let functions = Arc::new(WithFunctions::new(sandbox.clone(), Arc::new(NoSurroundings)));
        let surroundings = Arc::new(WithVariables::new(variables.clone(), functions));
        let runtime = Runtime::start(store.clone(), Arc::clone(&registry), surroundings, config).await?;
        let base_url: Arc<str> = options.base_url().into();
        let registrations = Registrations::new(secrets.vault.clone(), catalog.clone(), Arc::clone(&base_url));
        let triggers = Triggers::start(store.clone(), runtime.clone(), Arc::clone(&registry), &calls);
        triggers.poll(catalog.clone(), app_caller.clone());
        triggers.register(registrations.clone(), app_caller.clone());
        let retention = Retention::start(store.clone(), runtime.clone(), RetentionConfig::default());
        let metrics = Metrics::new(runtime.clone(), triggers, retention);
        let gate = Gate::new(
            store.clone(),
            secrets.hasher.clone(),
            secrets.operator_token,
            options.regions(),
        );
        let people = People::new(
            store.clone(),
            runtime.clone(),
            secrets.answer_links,
            Arc::clone(&base_url),
        );
        let app_targets = AppTargets::new(store.clone(), registrations.clone(), credentials.clone());
        let services = Services {
            store: store.clone(),
            runtime: runtime.clone(),
            registry,
            sandbox,
            catalog,
            credentials,
            outbound,
            http: http.clone(),
            app_caller,
            targets: WebhookTargets::new(store.clone(), variables.clone(), app_targets),
            registrations,
            vault: secrets.vault,
            variables,
            people,
            gate: gate.clone(),
            hasher: secrets.hasher,
            region: options.region.as_str().into(),
            base_url,
            messages: MessageLimits {
                received: options.message_limit,
                sent: options.answer_limit,
            },
        };
        let health = Health::new().await;
        let routes = with_reflection(services.routes().add_service(health.service()))?;
        let access = AccessLayer::new(gate, metrics.clone());
        Ok((
            Self {
                store,
                runtime,
                http,
                routes,
                access,
                metrics,
                health,
            },
            first_key,
        ))
    }

    /// The way in for this process: gRPC without a socket.
    pub fn service(&self) -> Access<Routes> {
        self.access.layer(self.routes.clone())
    }

    /// `/readyz` and `/metrics`, for whoever serves HTTP.
    pub fn operations(&self) -> axum::Router {
        operations::router(
            self.store.clone(),
            self.runtime.clone(),
            self.metrics.clone(),
            self.health.clone(),
        )
    }

    /// Serves gRPC until the shutdown comes and what is in flight is done.
    pub async fn serve_grpc(
        &self,
        listener: TcpListener,
        options: Options,
        shutdown: impl Future<Output = ()>,
    ) {
        listener::serve(listener, self.service(), options, shutdown).await;
    }

    /// Whether the core cannot go on.
    pub fn is_broken(&self) -> bool {
        self.runtime.is_broken()
    }

    /// Returns when the core cannot go on and the process should end.
    pub async fn broken(&self) {
        self.runtime.broken().await;
    }

    /// Tells load balancers that no more requests should come, and callers who wait for runs to wait no longer.
    pub async fn announce_shutdown(&self) {
        self.runtime.dismiss_callers();
        self.health.stop().await;
    }

    /// Lets running steps finish or hands them over, within a time, and closes the database.
    pub async fn drain(&self, patience: Duration) {
        self.runtime.drain(patience).await;
        // A token that comes and is not stored may be lost for ever.
        let _in_time = tokio::time::timeout(TOKENS_SETTLE, self.http.settle()).await;
        self.store.close().await;
    }
}

/// How user code is run, as the operator says.
fn sandbox_config(options: &ServeOptions) -> SandboxConfig {
    // Not by its path, where an update may have put another binary by now.
    let config = SandboxConfig::new("/proc/self/exe".into());
    match options.code_workers {
        Some(workers) => config.with_workers(workers.into()),
        None => config,
    }
}

/// Adds reflection in both versions that clients ask for.
fn with_reflection(routes: Routes) -> Result<Routes, tonic_reflection::server::Error> {
    let builder = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(contract::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    // What is asked on one stream is no request of its own, so its memory is bounded here.
    Ok(routes
        .add_service(
            builder()
                .build_v1()?
                .max_decoding_message_size(MAX_QUESTION_BYTES),
        )
        .add_service(
            builder()
                .build_v1alpha()?
                .max_decoding_message_size(MAX_QUESTION_BYTES),
        ))
}
