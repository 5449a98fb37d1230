//! The gRPC services, a file for each of the contract's: validate, call, answer.
//!
//! A service is a struct with a method for each of the contract's, taking who calls and the message. The macro
//! `service!` puts them behind tonic's trait; a method that is missing, or that asks for another scope than its proto
//! says, does not compile.

mod activity;
mod admin;
mod app_target;
mod callable;
mod catalog;
mod change;
mod credential;
mod database;
mod folder;
mod function;
mod graph;
mod human_request;
mod ingress;
mod invitation;
mod kinds;
mod manifest;
mod member;
mod page;
mod reference;
mod run;
mod structure;
mod tag;
mod target;
mod team;
mod variable;
mod webhook;
mod workflow;

use std::future::Future;
use std::sync::Arc;

use contract::access::Rule;
use contract::rest::Trim;
use contract::validation::Validate;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

pub use app_target::AppTargets;
pub use target::WebhookTargets;

use crate::auth::{Authorized, Gate, KeyHasher};
use crate::catalog::Catalog;
use crate::credentials::Credentials;
use crate::error::{Error, Result};
use crate::nodes::Registry;
use crate::nodes::app_caller::AppCaller;
use crate::nodes::http::HttpCaller;
use crate::outbound::Outbound;
use crate::people::People;
use crate::registrations::Registrations;
use crate::runtime::Runtime;
use crate::sandbox::Sandbox;
use crate::secret::Vault;
use crate::store::Store;
use crate::variables::Variables;

/// What all services work with. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    /// The database.
    pub store: Store,
    /// What drives runs.
    pub runtime: Runtime,
    /// The node kinds.
    pub registry: Arc<Registry>,
    /// Runs custom functions.
    pub sandbox: Sandbox,
    /// The apps of each organization.
    pub catalog: Catalog,
    /// Opens credentials and seals them.
    pub credentials: Credentials,
    /// Sends requests to other services.
    pub outbound: Outbound,
    /// Makes calls as nodes do.
    pub http: HttpCaller,
    /// Calls apps, those with a driver too.
    pub app_caller: AppCaller,
    /// What webhooks lead to.
    pub targets: WebhookTargets,
    /// Makes the registrations of triggers that services call.
    pub registrations: Registrations,
    /// Seals what is secret.
    pub vault: Vault,
    /// What runs know of variables, told of changes.
    pub variables: Variables,
    /// Takes people's answers.
    pub people: People,
    /// The gate, which is told of changes to keys and plans.
    pub gate: Gate,
    /// Hashes new keys.
    pub hasher: KeyHasher,
    /// This server's region, part of new keys.
    pub region: Arc<str>,
    /// What webhook URLs begin with.
    pub base_url: Arc<str>,
    /// How large messages may be.
    pub messages: MessageLimits,
}

/// The largest messages, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct MessageLimits {
    /// That callers may send; a webhook's call may be larger.
    pub received: usize,
    /// That callers are sent.
    pub sent: usize,
}

impl Services {
    /// The routes of every service there is. Methods of the contract's other services answer UNIMPLEMENTED.
    pub fn routes(&self) -> Routes {
        use contract::v1::activity_service_server::ActivityServiceServer;
        use contract::v1::admin_service_server::AdminServiceServer;
        use contract::v1::catalog_service_server::CatalogServiceServer;
        use contract::v1::credential_service_server::CredentialServiceServer;
        use contract::v1::database_service_server::DatabaseServiceServer;
        use contract::v1::folder_service_server::FolderServiceServer;
        use contract::v1::function_service_server::FunctionServiceServer;
        use contract::v1::human_request_service_server::HumanRequestServiceServer;
        use contract::v1::invitation_service_server::InvitationServiceServer;
        use contract::v1::member_service_server::MemberServiceServer;
        use contract::v1::page_service_server::PageServiceServer;
        use contract::v1::run_service_server::RunServiceServer;
        use contract::v1::structure_service_server::StructureServiceServer;
        use contract::v1::tag_service_server::TagServiceServer;
        use contract::v1::team_service_server::TeamServiceServer;
        use contract::v1::variable_service_server::VariableServiceServer;
        use contract::v1::webhook_ingress_service_server::WebhookIngressServiceServer;
        use contract::v1::webhook_service_server::WebhookServiceServer;
        use contract::v1::workflow_service_server::WorkflowServiceServer;

        let MessageLimits { received, sent } = self.messages;
        macro_rules! limited {
            ($server:ident, $service:expr) => {
                $server::new($service)
                    .max_decoding_message_size(received)
                    .max_encoding_message_size(sent)
            };
        }
        Routes::new(limited!(WorkflowServiceServer, workflow::Workflows::new(self)))
            .add_service(limited!(RunServiceServer, run::Runs::new(self)))
            .add_service(limited!(
                HumanRequestServiceServer,
                human_request::HumanRequests::new(self)
            ))
            .add_service(limited!(WebhookServiceServer, webhook::Webhooks::new(self)))
            .add_service(
                limited!(WebhookIngressServiceServer, ingress::WebhookIngress::new(self))
                    .max_decoding_message_size(received.max(ingress::MAX_MESSAGE_BYTES)),
            )
            .add_service(limited!(VariableServiceServer, variable::Variables::new(self)))
            .add_service(limited!(TeamServiceServer, team::Teams::new(self)))
            .add_service(limited!(FolderServiceServer, folder::Folders::new(self)))
            .add_service(limited!(TagServiceServer, tag::Tags::new(self)))
            .add_service(limited!(MemberServiceServer, member::Members::new(self)))
            .add_service(limited!(PageServiceServer, page::Pages::new(self)))
            .add_service(limited!(
                InvitationServiceServer,
                invitation::Invitations::new(self)
            ))
            .add_service(limited!(ActivityServiceServer, activity::ActivityFeed::new(self)))
            .add_service(limited!(CatalogServiceServer, catalog::Catalog::new(self)))
            .add_service(
                limited!(AdminServiceServer, admin::Admin::new(self))
                    .max_decoding_message_size(received.max(manifest::MAX_MESSAGE_BYTES)),
            )
            .add_service(limited!(
                CredentialServiceServer,
                credential::Credentials::new(self)
            ))
            .add_service(limited!(DatabaseServiceServer, database::Databases::new(self)))
            .add_service(limited!(StructureServiceServer, structure::Structures::new(self)))
            .add_service(limited!(FunctionServiceServer, function::Functions::new(self)))
    }
}

/// Puts the methods of a type behind a service's trait. Called by the macros that the contract generates.
macro_rules! service {
    ($type:ty, $service:path, {
        $($shape:ident($($stream:ident)?) $method:ident($request:ty) -> $response:ty as $rule:ty;)*
    }) => {
        impl $service for $type {
            $($crate::services::service! { @method $shape($($stream)?) $method $request, $response, $rule })*
        }
    };
    (@method unary() $method:ident $request:ty, $response:ty, $rule:ty) => {
        fn $method<'life, 'future>(
            &'life self,
            request: tonic::Request<$request>,
        ) -> std::pin::Pin<
            Box<dyn Future<Output = std::result::Result<tonic::Response<$response>, tonic::Status>> + Send + 'future>,
        >
        where
            'life: 'future,
            Self: 'future,
        {
            Box::pin($crate::services::call(request, move |caller: $crate::auth::Authorized<$rule>, message| {
                self.$method(caller, message)
            }))
        }
    };
    (@method stream($stream:ident) $method:ident $request:ty, $response:ty, $rule:ty) => {
        type $stream = $crate::services::BoxStream<$response>;

        fn $method<'life, 'future>(
            &'life self,
            request: tonic::Request<$request>,
        ) -> std::pin::Pin<
            Box<dyn Future<Output = std::result::Result<tonic::Response<Self::$stream>, tonic::Status>> + Send + 'future>,
        >
        where
            'life: 'future,
            Self: 'future,
        {
            Box::pin($crate::services::call(request, move |caller: $crate::auth::Authorized<$rule>, message| {
                self.$method(caller, message)
            }))
        }
    };
}
use service;

/// A stream of responses.
type BoxStream<T> = std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<T, Status>> + Send>>;

/// What every method does around its own work: who calls, trim, validate, and errors into statuses.
async fn call<R, M, A, F, O>(
    request: Request<M>,
    handle: impl FnOnce(Authorized<R>, M) -> F,
) -> Result<Response<A>, Status>
where
    R: Rule,
    R::Passes: crate::auth::Passes,
    M: Trim + Validate,
    F: Future<Output = Result<O>>,
    O: Into<Response<A>>,
{
    let (_, extensions, mut message) = request.into_parts();
    let checked = Authorized::<R>::take(&extensions).and_then(|caller| {
        message.trim();
        match message.violations() {
            violations if violations.is_empty() => Ok(caller),
            violations => Err(Error::violations(violations)),
        }
    });
    let caller = checked.map_err(Error::into_status)?;
    handle(caller, message)
        .await
        .map(Into::into)
        .map_err(Error::into_status)
}

/// The most that a page holds.
const MAX_PAGE: i64 = 200;

/// The size of a page: what is asked for, at most [`MAX_PAGE`]. Validation has refused what is below one.
fn page_size(limit: Option<i32>, default: i64) -> i64 {
    limit.map_or(default, i64::from).min(MAX_PAGE)
}

/// Cuts a list that was read with one row more than `size`, and tells whether that row was there.
fn cut<T>(rows: &mut Vec<T>, size: i64) -> bool {
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    let truncated = rows.len() > size;
    rows.truncate(size);
    truncated
}

/// `Some` of a text that is not empty.
fn given(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
}
