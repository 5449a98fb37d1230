//! Administration: organizations, plans, users and keys.

use contract::access::Operator;
use contract::json::Words as _;
use contract::v1::{self, ErrorReason, Scope, limit};
use wire::api_key::ApiKeyText;

use super::{Services, manifest, service};
use crate::auth::Authorized;
use crate::bootstrap::all_scopes;
use crate::clock;
use crate::error::{Error, Result};
use crate::secret::SecretError;
use crate::store::{
    BillingStatus, Founding, FoundingKey, NewApiKey, OrganizationChange, Plan, Role, StoreError,
};

/// The plan of an organization that names none, and the pattern of new plans.
const DEFAULT_PLAN: &str = "unlimited";

pub(super) struct Admin {
    services: Services,
}

contract::admin_service_methods!(service, Admin);

impl Admin {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn create_organization(
        &self,
        caller: Authorized<Operator>,
        request: v1::CreateOrganizationRequest,
    ) -> Result<v1::CreateOrganizationResponse> {
        let key = self.new_key()?;
        let founding = Founding {
            name: &request.name,
            plan_id: request.plan_id.as_deref().unwrap_or(DEFAULT_PLAN),
            owner_email: "owner@localhost",
            key: Some(FoundingKey {
                hash: &self.services.hasher.hash(&key),
                scopes: &all_scopes(),
            }),
        };
        let founded = self
            .services
            .store
            .found_organization(&caller.actor(), &founding)
            .await;
        let founded = founded.map_err(unknown_plan)?;
        Ok(v1::CreateOrganizationResponse {
            organization_id: founded.organization_id,
            owner_user_id: founded.owner_user_id,
            team_id: founded.team_id,
            api_key: key.text().to_owned(),
        })
    }

    async fn update_organization(
        &self,
        caller: Authorized<Operator>,
        request: v1::UpdateOrganizationRequest,
    ) -> Result<v1::UpdateOrganizationResponse> {
        let change = OrganizationChange {
            billing_status: match request.billing_status() {
                v1::BillingStatus::Unspecified => None,
                v1::BillingStatus::Ok => Some(BillingStatus::Ok),
                v1::BillingStatus::PastDue => Some(BillingStatus::PastDue),
            },
            credits: request.credits.map(number),
            plan_id: request.plan_id,
        };
        let store = &self.services.store;
        let changed = store
            .change_organization(&caller.actor(), &request.organization_id, &change)
            .await;
        changed.map_err(unknown_plan)?;
        self.forget();
        Ok(v1::UpdateOrganizationResponse {})
    }

    async fn set_plan(
        &self,
        caller: Authorized<Operator>,
        request: v1::SetPlanRequest,
    ) -> Result<v1::SetPlanResponse> {
        let store = &self.services.store;
        let before = match store.plan(&request.id).await {
            Err(StoreError::NotFound(_)) => store.plan(DEFAULT_PLAN).await?,
            found => found?,
        };
        let plan = Plan {
            id: request.id,
            api_access: request.api_access.unwrap_or(before.api_access),
            active: request.active.unwrap_or(before.active),
            custom_functions: request.custom_functions.unwrap_or(before.custom_functions),
            structures_created: request
                .structures_created
                .map_or(before.structures_created, number),
            seats: request.seats.map_or(before.seats, number),
            credits: request.credits.map_or(before.credits, number),
            read_rpm: request.read_rpm.map_or(before.read_rpm, number),
            write_rpm: request.write_rpm.map_or(before.write_rpm, number),
            retention_days: request.retention_days.map_or(before.retention_days, number),
            retention_runs: request.retention_runs.map_or(before.retention_runs, number),
            activity_days: request.activity_days.map_or(before.activity_days, number),
        };
        store.put_plan(&caller.actor(), &plan).await?;
        self.forget();
        Ok(v1::SetPlanResponse {})
    }

    async fn create_user(
        &self,
        caller: Authorized<Operator>,
        request: v1::CreateUserRequest,
    ) -> Result<v1::CreateUserResponse> {
        let role = v1::MemberRole::to_word(request.role).and_then(Role::from_word);
        let role = role.ok_or_else(|| Error::invalid("role", "is required"))?;
        let store = &self.services.store;
        store.organization(&request.organization_id).await?;
        let created = store
            .create_member(
                &caller.actor(),
                &request.organization_id,
                &request.email,
                request.name.as_deref(),
                role,
            )
            .await;
        let user_id = created.map_err(|error| match error {
            StoreError::Duplicate(_) => Error::new(
                ErrorReason::Conflict,
                "The organization has a member with this email.",
            ),
            other => other.into(),
        })?;
        Ok(v1::CreateUserResponse { user_id })
    }

    async fn create_api_key(
        &self,
        caller: Authorized<Operator>,
        request: v1::CreateApiKeyRequest,
    ) -> Result<v1::CreateApiKeyResponse> {
        let store = &self.services.store;
        let member = store.member(&request.organization_id, &request.user_id).await?;
        let scopes = allowed_scopes(&request.scopes, member.role)?;
        let key = self.new_key()?;
        let new = NewApiKey {
            organization_id: &request.organization_id,
            user_id: &request.user_id,
            hash: &self.services.hasher.hash(&key),
            scopes: &scopes,
            expires_at: request
                .expires_in_s
                .map(|seconds| clock::now_ms().saturating_add(seconds.saturating_mul(1000))),
        };
        let id = store.create_api_key(&caller.actor(), &new).await?;
        Ok(v1::CreateApiKeyResponse {
            id,
            api_key: key.text().to_owned(),
        })
    }

    async fn revoke_api_key(
        &self,
        caller: Authorized<Operator>,
        request: v1::RevokeApiKeyRequest,
    ) -> Result<v1::RevokeApiKeyResponse> {
        self.services
            .store
            .revoke_api_key(&caller.actor(), &request.id)
            .await?;
        self.forget();
        Ok(v1::RevokeApiKeyResponse {})
    }

    async fn rotate_secrets(
        &self,
        caller: Authorized<Operator>,
        _request: v1::RotateSecretsRequest,
    ) -> Result<v1::RotateSecretsResponse> {
        let rotated = self.services.vault.rotate(&caller.actor()).await;
        // The operator may know what is wrong with the key.
        let version = rotated.map_err(|error| match error {
            SecretError::NothingNewer { .. } => Error::new(ErrorReason::Conflict, format!("{error}.")),
            error => Error::unavailable(format!("{error}.")).with_cause(error),
        })?;
        Ok(v1::RotateSecretsResponse {
            master_key_version: i32::try_from(version).unwrap_or(i32::MAX),
        })
    }

    async fn import_open_api(
        &self,
        caller: Authorized<Operator>,
        request: v1::ImportOpenApiRequest,
    ) -> Result<v1::ImportOpenApiResponse> {
        manifest::import(&self.services, &caller, request).await
    }

    async fn add_manifest(
        &self,
        caller: Authorized<Operator>,
        request: v1::AddManifestRequest,
    ) -> Result<v1::AddManifestResponse> {
        let organization_id = request.organization_id.as_deref();
        let app = manifest::add(&self.services, &caller, organization_id, request.manifest).await?;
        Ok(v1::AddManifestResponse { app: Some(app) })
    }

    fn new_key(&self) -> Result<ApiKeyText> {
        ApiKeyText::generate(&self.services.region).map_err(Error::internal)
    }

    /// A change of keys, plans or bills holds on this node at once.
    fn forget(&self) {
        self.services.gate.forget();
        self.services.targets.forget();
    }
}

/// The scopes of a new key: those asked for, or all; a viewer's key never writes.
fn allowed_scopes(asked: &[i32], role: Role) -> Result<Vec<&'static str>> {
    let writes = |scope: &str| scope.ends_with(":write");
    if asked.is_empty() {
        return Ok(all_scopes()
            .into_iter()
            .filter(|scope| role != Role::Viewer || !writes(scope))
            .collect());
    }
    let scopes: Vec<&str> = asked.iter().filter_map(|scope| Scope::to_word(*scope)).collect();
    match scopes.iter().find(|scope| role == Role::Viewer && writes(scope)) {
        Some(scope) => Err(Error::invalid(
            "scopes",
            format!("a viewer's key cannot have {scope}"),
        )),
        None => Ok(scopes),
    }
}

/// A limit as the store has it: nothing for unlimited.
fn number(limit: v1::Limit) -> Option<i64> {
    match limit.limit {
        Some(limit::Limit::Value(value)) => Some(value),
        Some(limit::Limit::Unlimited(_)) | None => None,
    }
}

fn unknown_plan(error: StoreError) -> Error {
    match error {
        StoreError::NotFound("plan") => Error::invalid("planId", "must name a plan; `plan set` makes one"),
        other => other.into(),
    }
}
