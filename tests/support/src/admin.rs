//! The operator's hand: organizations, plans, users and keys for tests.

use contract::v1::admin_service_client::AdminServiceClient;
use contract::v1::{self, Limit, limit};
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Status};

/// A client of AdminService with the operator token.
pub type AdminClient = AdminServiceClient<InterceptedService<Channel, Bearer>>;

/// Puts a bearer token on each call.
#[derive(Clone)]
pub struct Bearer(MetadataValue<tonic::metadata::Ascii>);

impl Bearer {
    /// This token.
    ///
    /// # Panics
    /// When it cannot be sent.
    #[must_use]
    pub fn new(token: &str) -> Self {
        Self(format!("Bearer {token}").parse().expect("a token of plain ASCII"))
    }
}

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// Does what `switchyard admin` does; what fails, panics.
#[derive(Clone)]
pub struct Admin {
    /// The client, for what has no method here.
    pub client: AdminClient,
}

impl Admin {
    pub(crate) fn new(channel: Channel, token: &str) -> Self {
        Self {
            client: AdminServiceClient::with_interceptor(channel, Bearer::new(token)),
        }
    }

    /// Creates an organization on a plan, or on the unlimited one.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn organization(&self, name: &str, plan: Option<&str>) -> v1::CreateOrganizationResponse {
        let request = v1::CreateOrganizationRequest {
            name: name.to_owned(),
            plan_id: plan.map(str::to_owned),
        };
        let created = self.client.clone().create_organization(request).await;
        created.expect("an organization").into_inner()
    }

    /// Creates or changes a plan.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn plan(&self, plan: v1::SetPlanRequest) {
        self.client.clone().set_plan(plan).await.expect("a plan");
    }

    /// Changes an organization.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn change(&self, change: v1::UpdateOrganizationRequest) {
        let changed = self.client.clone().update_organization(change).await;
        changed.expect("a changed organization");
    }

    /// Creates a user with a key, and gives the user's id and the key.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn user(&self, organization: &str, role: v1::MemberRole) -> (String, v1::CreateApiKeyResponse) {
        let request = v1::CreateUserRequest {
            organization_id: organization.to_owned(),
            email: format!("{}@users.test", role.as_str_name().to_lowercase()),
            role: role.into(),
            name: None,
        };
        let created = self.client.clone().create_user(request).await;
        let user = created.expect("a user").into_inner().user_id;
        let key = self.key(organization, &user, &[], None).await;
        (user, key)
    }

    /// Creates a key with these scopes, or with all; perhaps one that expires.
    ///
    /// # Panics
    /// When it is refused.
    pub async fn key(
        &self,
        organization: &str,
        user: &str,
        scopes: &[v1::Scope],
        expires_in_s: Option<i64>,
    ) -> v1::CreateApiKeyResponse {
        let request = v1::CreateApiKeyRequest {
            organization_id: organization.to_owned(),
            user_id: user.to_owned(),
            scopes: scopes.iter().map(|scope| i32::from(*scope)).collect(),
            expires_in_s,
        };
        let created = self.client.clone().create_api_key(request).await;
        created.expect("a key").into_inner()
    }
}

/// A limit of so many.
#[must_use]
pub fn at_most(value: i64) -> Limit {
    Limit {
        limit: Some(limit::Limit::Value(value)),
    }
}
