//! `switchyard admin …`: the operator's commands, over gRPC to a running server.
//!
//! Deliberately absent: rules. Each command is one call of AdminService, which knows what is allowed. Only `backup` works
//! on the database itself.

mod backup;
mod catalog;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use contract::json::Words as _;
use contract::v1::admin_service_client::AdminServiceClient;
use contract::v1::{self, Limit, limit};
use serde_json::{Value, json};
use tonic::Request;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic_types::StatusExt as _;

use crate::secret::{Secret, read_private};
use crate::store::StoreError;
use backup::Backup;
use catalog::{Catalog, CatalogCall};

/// Administer a running server.
#[derive(Args)]
pub struct AdminCommand {
    #[command(flatten)]
    server: ServerOptions,
    /// Answer with one JSON object, for machines.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    task: Task,
}

/// Where the server is, and what it is called with.
#[derive(Args)]
struct ServerOptions {
    /// Address of the core.
    #[arg(
        long,
        global = true,
        env = "SWITCHYARD_CORE",
        value_name = "URL",
        default_value = "http://127.0.0.1:50051"
    )]
    core: String,
    /// Operator token; the file `operator-token` of the data directory when absent.
    #[arg(
        long,
        global = true,
        env = "SWITCHYARD_OPERATOR_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    operator_token: Option<Secret>,
    /// Data directory with the file `operator-token`.
    #[arg(
        long,
        global = true,
        env = "SWITCHYARD_DATA_DIR",
        value_name = "DIR",
        default_value = "./data"
    )]
    data_dir: PathBuf,
    /// Certificate authority (PEM) of a core with a certificate of its own.
    #[arg(long, global = true, env = "SWITCHYARD_CORE_CA", value_name = "FILE")]
    core_ca: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Task {
    #[command(flatten)]
    Call(Noun),
    Backup(Backup),
}

#[derive(Subcommand)]
enum Noun {
    /// Organizations.
    #[command(subcommand)]
    Org(Org),
    /// Plans.
    #[command(subcommand)]
    Plan(PlanVerb),
    /// Users.
    #[command(subcommand)]
    User(User),
    /// API keys.
    #[command(subcommand)]
    Key(Key),
    /// Stored secrets.
    #[command(subcommand)]
    Secrets(Secrets),
    /// Apps of the catalog.
    #[command(subcommand)]
    Catalog(Catalog),
}

#[derive(Subcommand)]
enum Org {
    /// Create an organization with an owner, a team and a key.
    Create {
        /// Name.
        #[arg(long)]
        name: String,
        /// Plan; `unlimited` when absent.
        #[arg(long)]
        plan: Option<String>,
    },
    /// Change an organization's plan, credits or billing status.
    Set {
        /// Id of the organization.
        #[arg(long)]
        org: String,
        /// Plan.
        #[arg(long)]
        plan: Option<String>,
        /// Credits left: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        credits: Option<Limit>,
        /// Whether its bills are paid.
        #[arg(long)]
        billing_status: Option<Billing>,
    },
}

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Billing {
    Ok,
    PastDue,
}

#[derive(Subcommand)]
enum PlanVerb {
    /// Create or change a plan; what is not given stays.
    Set {
        /// Id of the plan.
        #[arg(long)]
        id: String,
        /// Whether keys may call the API.
        #[arg(long)]
        api_access: Option<bool>,
        /// Whether the plan may be used at all.
        #[arg(long)]
        active: Option<bool>,
        /// Whether custom functions may be written.
        #[arg(long)]
        custom_functions: Option<bool>,
        /// Structures an organization may have: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        structures: Option<Limit>,
        /// Members and pending invitations: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        seats: Option<Limit>,
        /// Credits a new organization starts with: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        credits: Option<Limit>,
        /// Reads a minute and key: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        read_rpm: Option<Limit>,
        /// Writes a minute and key: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        write_rpm: Option<Limit>,
        /// Days a run is kept after its end: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        retention_days: Option<Limit>,
        /// Ended runs kept of each organization, the newest: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        retention_runs: Option<Limit>,
        /// Days an entry of the activity feed is kept: a number, or `unlimited`.
        #[arg(long, value_parser = read_limit)]
        activity_days: Option<Limit>,
    },
}

#[derive(Subcommand)]
enum User {
    /// Create a user.
    Create {
        /// Id of the organization.
        #[arg(long)]
        org: String,
        /// Email address.
        #[arg(long)]
        email: String,
        /// owner, admin, member or viewer.
        #[arg(long, value_parser = read_word::<v1::MemberRole>)]
        role: i32,
        /// Name.
        #[arg(long)]
        name: Option<String>,
    },
}

#[derive(Subcommand)]
enum Key {
    /// Create an API key; it is shown this once.
    Create {
        /// Id of the organization.
        #[arg(long)]
        org: String,
        /// Id of the user the key acts for.
        #[arg(long)]
        user: String,
        /// `all`, or scopes separated by commas.
        #[arg(long)]
        scopes: String,
        /// Time until it expires: a number with s, m, h or d.
        #[arg(long, value_parser = read_duration)]
        expires_in: Option<i64>,
    },
    /// Revoke an API key.
    Revoke {
        /// Id of the key.
        #[arg(long)]
        id: String,
    },
}

#[derive(Subcommand)]
enum Secrets {
    /// Wrap all secrets with a new master key, while serving.
    Rotate,
}

/// What a command tells: its members, and for people perhaps another text.
struct Told {
    members: Value,
    text: Option<String>,
}

impl From<Value> for Told {
    fn from(members: Value) -> Self {
        Self { members, text: None }
    }
}

/// A command that was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// There is no token to call with.
    #[error("no operator token: give --operator-token, or --data-dir with the file operator-token")]
    NoToken,
    /// A file or an address cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// The server cannot be reached.
    #[error("the core at {core} cannot be reached; is `switchyard serve` running there? ({source})")]
    Unreachable {
        /// The address.
        core: String,
        /// Why.
        source: tonic::transport::Error,
    },
    /// The server refuses.
    #[error("{}", said(.0))]
    Refused(tonic::Status),
    /// The database cannot be copied.
    #[error(transparent)]
    Backup(#[from] StoreError),
}

impl AdminCommand {
    /// Carries the command out and gives what to print.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub async fn run(self) -> Result<String, AdminError> {
        let as_json = self.json;
        let told = match self.task {
            Task::Call(noun) => execute(self.server.client().await?, noun).await?,
            Task::Backup(backup) => backup.run(&self.server.data_dir).await?.into(),
        };
        Ok(match told {
            Told { members, .. } if as_json => members.to_string(),
            Told { text: Some(text), .. } => text,
            Told { members, text: None } => plain(&members),
        })
    }
}

impl ServerOptions {
    async fn client(&self) -> Result<Caller, AdminError> {
        let token = match &self.operator_token {
            Some(token) => token.clone(),
            None => {
                let file = read_private(&self.data_dir.join("operator-token"));
                let file = file.map_err(|error| AdminError::Unusable(error.to_string()))?;
                Secret::from(file.ok_or(AdminError::NoToken)?)
            }
        };
        let authorization = MetadataValue::try_from(format!("Bearer {}", token.expose()))
            .map_err(|_| AdminError::Unusable("the operator token must be plain ASCII text".to_owned()))?;
        let channel = endpoint(&self.core, self.core_ca.as_deref())?
            .connect()
            .await
            .map_err(|source| AdminError::Unreachable {
                core: self.core.clone(),
                source,
            })?;
        Ok(Caller {
            client: AdminServiceClient::new(channel),
            authorization,
        })
    }
}

fn endpoint(core: &str, ca: Option<&std::path::Path>) -> Result<Endpoint, AdminError> {
    let unusable = |error: &dyn std::fmt::Display| AdminError::Unusable(format!("{core}: {error}"));
    let endpoint = Endpoint::from_shared(core.to_owned()).map_err(|error| unusable(&error))?;
    let endpoint = endpoint
        .connect_timeout(Duration::from_secs(5))
        .timeout(Duration::from_secs(60));
    if !core.starts_with("https://") {
        return Ok(endpoint);
    }
    let mut tls = ClientTlsConfig::new().with_enabled_roots();
    if let Some(path) = ca {
        let pem = std::fs::read(path).map_err(|error| unusable(&format!("{}: {error}", path.display())))?;
        tls = tls.ca_certificate(tonic::transport::Certificate::from_pem(pem));
    }
    endpoint.tls_config(tls).map_err(|error| unusable(&error))
}

struct Caller {
    client: AdminServiceClient<Channel>,
    authorization: MetadataValue<Ascii>,
}

impl Caller {
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request
            .metadata_mut()
            .insert("authorization", self.authorization.clone());
        request
    }
}

/// Calls one method and gives its answer.
macro_rules! call {
    ($caller:ident.$method:ident($message:expr)) => {{
        let request = $caller.request($message);
        $caller
            .client
            .$method(request)
            .await
            .map_err(AdminError::Refused)?
            .into_inner()
    }};
}

async fn execute(mut caller: Caller, noun: Noun) -> Result<Told, AdminError> {
    let members = match noun {
        Noun::Org(Org::Create { name, plan }) => {
            let made =
                call!(caller.create_organization(v1::CreateOrganizationRequest { name, plan_id: plan }));
            json!({
                "organizationId": made.organization_id, "ownerUserId": made.owner_user_id,
                "teamId": made.team_id, "apiKey": made.api_key,
            })
        }
        Noun::Org(Org::Set {
            org,
            plan,
            credits,
            billing_status,
        }) => {
            let billing_status = match billing_status {
                None => v1::BillingStatus::Unspecified,
                Some(Billing::Ok) => v1::BillingStatus::Ok,
                Some(Billing::PastDue) => v1::BillingStatus::PastDue,
            };
            call!(caller.update_organization(v1::UpdateOrganizationRequest {
                organization_id: org,
                plan_id: plan,
                credits,
                billing_status: billing_status.into(),
            }));
            json!({})
        }
        Noun::Plan(verb) => {
            call!(caller.set_plan(set_plan(verb)));
            json!({})
        }
        Noun::User(User::Create {
            org,
            email,
            role,
            name,
        }) => {
            let made = call!(caller.create_user(v1::CreateUserRequest {
                organization_id: org,
                email,
                role,
                name
            }));
            json!({ "userId": made.user_id })
        }
        Noun::Key(Key::Create {
            org,
            user,
            scopes,
            expires_in,
        }) => {
            let made = call!(caller.create_api_key(v1::CreateApiKeyRequest {
                organization_id: org,
                user_id: user,
                scopes: read_scopes(&scopes)?,
                expires_in_s: expires_in,
            }));
            json!({ "id": made.id, "apiKey": made.api_key })
        }
        Noun::Key(Key::Revoke { id }) => {
            call!(caller.revoke_api_key(v1::RevokeApiKeyRequest { id }));
            json!({})
        }
        Noun::Secrets(Secrets::Rotate) => {
            let answer = call!(caller.rotate_secrets(v1::RotateSecretsRequest {}));
            json!({ "masterKeyVersion": answer.master_key_version })
        }
        Noun::Catalog(command) => {
            return Ok(match command.call()? {
                CatalogCall::Import(request) => catalog::imported(call!(caller.import_open_api(request))),
                CatalogCall::Add(request) => catalog::added(call!(caller.add_manifest(request))),
            });
        }
    };
    Ok(members.into())
}

fn set_plan(verb: PlanVerb) -> v1::SetPlanRequest {
    let PlanVerb::Set {
        id,
        api_access,
        active,
        custom_functions,
        structures,
        seats,
        credits,
        read_rpm,
        write_rpm,
        retention_days,
        retention_runs,
        activity_days,
    } = verb;
    v1::SetPlanRequest {
        id,
        api_access,
        active,
        custom_functions,
        structures_created: structures,
        seats,
        credits,
        read_rpm,
        write_rpm,
        retention_days,
        retention_runs,
        activity_days,
    }
}

/// What the server says, and each place when it is about several.
fn said(status: &tonic::Status) -> String {
    let details = status.get_error_details();
    let places = details
        .bad_request()
        .map(|request| request.field_violations.as_slice());
    let mut text = status.message().to_owned();
    for place in places.filter(|places| places.len() > 1).unwrap_or_default() {
        text.push_str(&format!("\n{}: {}", place.field, place.description));
    }
    text
}

/// A line for each member, for people.
fn plain(answer: &Value) -> String {
    let members = answer.as_object().filter(|members| !members.is_empty());
    let Some(members) = members else {
        return "Done.".to_owned();
    };
    let mut lines = Vec::new();
    for (name, value) in members {
        match value {
            Value::String(text) => lines.push(format!("{name}: {text}")),
            Value::Array(texts) => {
                let each = texts.iter().filter_map(Value::as_str);
                lines.extend(each.map(|text| format!("{name}: {text}")));
            }
            other => lines.push(format!("{name}: {other}")),
        }
    }
    lines.join("\n")
}

fn read_limit(text: &str) -> Result<Limit, String> {
    let limit = match text {
        "unlimited" => limit::Limit::Unlimited(true),
        number => limit::Limit::Value(number.parse().map_err(|_| "must be a number, or `unlimited`")?),
    };
    Ok(Limit { limit: Some(limit) })
}

fn read_word<T: contract::json::Words>(text: &str) -> Result<i32, String> {
    T::from_word(text).ok_or_else(|| format!("must be one of {}", T::choices()))
}

/// The scopes of a list; none stands for all.
fn read_scopes(text: &str) -> Result<Vec<i32>, AdminError> {
    if text == "all" {
        return Ok(Vec::new());
    }
    let scopes = text.split(',').map(str::trim).map(|word| {
        v1::Scope::from_word(word).ok_or_else(|| {
            AdminError::Unusable(format!(
                "{word} is not a scope; there are {}",
                v1::Scope::choices()
            ))
        })
    });
    scopes.collect()
}

/// Seconds of a number with a unit.
fn read_duration(text: &str) -> Result<i64, String> {
    let wrong = || "must be a number with s, m, h or d, such as 30d".to_owned();
    let (digits, unit) = text
        .split_at_checked(text.len().saturating_sub(1))
        .ok_or_else(wrong)?;
    let seconds: i64 = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return Err(wrong()),
    };
    let number: i64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(seconds)
        .filter(|seconds| *seconds > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(read_duration("30d"), Ok(2_592_000));
        assert_eq!(read_duration("90s"), Ok(90));
        for wrong in ["", "30", "d", "-1d", "1.5h", "0s", "1ä", "99999999999999999999d"] {
            assert!(read_duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn scopes_are_a_list_or_all() {
        assert!(read_scopes("all").is_ok_and(|scopes| scopes.is_empty()));
        assert!(read_scopes("workflow:read, webhook:write").is_ok_and(|scopes| scopes.len() == 2));
        assert!(read_scopes("workflow").is_err());
    }
}
