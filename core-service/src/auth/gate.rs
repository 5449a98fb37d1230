//! Decides whether a request may reach its method: 401, 421, 401, 429, 403, in this order.

use std::sync::Arc;
use std::time::Duration;

use contract::access::{Access, Method};
use contract::json::Words as _;
use contract::v1::{ErrorReason, Scope};
use http::{Extensions, HeaderMap};
use moka::sync::Cache;
use wire::api_key::ApiKeyText;

use super::caller::{Anyone, Call, KeyHolder, Operator, Origin, holds};
use super::key::KeyHasher;
use super::rate::{Rates, Standing};
use crate::clock;
use crate::config::Regions;
use crate::error::{Error, Result};
use crate::lookups::Lookups;
use crate::secret::Secret;
use crate::store::{Actor, ApiKey, Authentication, Role, Store};

/// How long a key that was looked up is believed: a revocation or a change of plan takes this long at most.
const BELIEVED: Duration = Duration::from_millis(800);

/// Keys that are kept.
const MOST_KEYS: u64 = 10_000;

/// How often the refusals of one key are recorded at most.
const RECORDED_EVERY: Duration = Duration::from_secs(1);

/// Knows who may pass.
#[derive(Clone)]
pub struct Gate {
    store: Store,
    hasher: KeyHasher,
    operator_token: Secret,
    regions: Arc<Regions>,
    known: Lookups<[u8; 32], Option<KeyHolder>, Error>,
    /// Keys whose refusal was recorded a moment ago.
    refused: Cache<String, ()>,
    rates: Rates,
}

impl Gate {
    /// A gate before this store.
    pub fn new(store: Store, hasher: KeyHasher, operator_token: Secret, regions: Regions) -> Self {
        Self {
            store,
            hasher,
            operator_token,
            regions: Arc::new(regions),
            known: Lookups::for_a_while(MOST_KEYS, BELIEVED),
            refused: Cache::builder()
                .max_capacity(MOST_KEYS)
                .time_to_live(RECORDED_EVERY)
                .build(),
            rates: Rates::default(),
        }
    }

    /// Lets a request pass and leaves on it who calls, for [`super::Authorized`]. How the call stands to its rate limit
    /// is left in `standing` whether it passes or not.
    ///
    /// # Errors
    /// When it may not pass.
    pub async fn admit(
        &self,
        method: &Method,
        headers: &HeaderMap,
        origin: Origin,
        extensions: &mut Extensions,
        standing: &mut Option<Standing>,
    ) -> Result<()> {
        match method.access {
            Access::Public => {
                _ = extensions.insert(Call {
                    principal: Anyone,
                    origin,
                })
            }
            Access::Operator => {
                let token = bearer(headers)?;
                if !self.operator_token.matches(token) {
                    return Err(unauthenticated("The operator token is not valid."));
                }
                extensions.insert(Call {
                    principal: Operator,
                    origin,
                });
            }
            Access::Key(scope) => {
                let principal = self.key_holder(bearer(headers)?, &origin).await?;
                *standing = self.rates.count(&principal, method.reads);
                if let Some(retry_after) = standing.as_ref().and_then(Standing::retry_after) {
                    return Err(too_many(retry_after));
                }
                check_plan(&principal)?;
                check_scope(&principal, scope)?;
                if method.admin_only && !matches!(principal.role, Role::Owner | Role::Admin) {
                    return Err(Error::new(
                        ErrorReason::AdminRequired,
                        "Only an owner or an admin may do this.",
                    ));
                }
                extensions.insert(Call { principal, origin });
            }
        }
        Ok(())
    }

    /// Lets a call go on that lasts: since it was admitted its key may have been revoked, or the plan may have changed.
    ///
    /// # Errors
    /// When it would not be admitted now.
    pub async fn admit_further(&self, call: &Call<KeyHolder>) -> Result<()> {
        let found = self.store.find_by_key_id(&call.principal.key.id).await?;
        let holder = found.filter(|found| is_usable(&found.key)).ok_or_else(invalid)?;
        check_plan(&holder)
    }

    async fn key_holder(&self, token: &str, origin: &Origin) -> Result<KeyHolder> {
        let key = ApiKeyText::parse(token).ok_or_else(invalid)?;
        if key.region() != self.regions.own {
            return Err(match self.regions.others.get(key.region()) {
                Some(base_url) => {
                    let message = format!(
                        "The API key belongs to the region {}; send the request there.",
                        key.region()
                    );
                    Error::new(ErrorReason::WrongRegion, message).with_base_url(base_url.as_str())
                }
                None => invalid(),
            });
        }
        let hash = self.hasher.hash(&key);
        let look_up = async || Ok(self.store.find_by_hash(&hash).await?.map(Arc::new));
        let holder = self.known.find(&hash, look_up).await?.ok_or_else(invalid)?;
        if !is_usable(&holder.key) {
            Box::pin(self.record_refusal(&holder, origin)).await;
            return Err(invalid());
        }
        Ok(holder)
    }

    /// Puts a refused sign-in into the organization's activity feed, though not each of a flood of them.
    async fn record_refusal(&self, holder: &KeyHolder, origin: &Origin) {
        let key = &holder.key;
        let fresh = self
            .refused
            .entry_by_ref(key.id.as_str())
            .or_insert(())
            .is_fresh();
        if !fresh {
            return;
        }
        let actor = Actor {
            user_id: Some(key.user_id.clone()),
            api_key_id: Some(key.id.clone()),
            request_id: Some(origin.request_id.clone()),
            ip: origin.ip.clone(),
        };
        let recorded = self
            .store
            .record_activity(&actor, &key.organization_id, "api_key.refused", &key.id, &key.id)
            .await;
        if let Err(error) = recorded {
            tracing::warn!(%error, key_id = key.id, "a refused sign-in could not be recorded");
        }
    }

    /// Forgets what was looked up, so that a change made here holds at once.
    pub fn forget(&self) {
        self.known.forget();
    }
}

/// Whether a key is neither expired nor revoked.
fn is_usable(key: &ApiKey) -> bool {
    let expired = key.expires_at.is_some_and(|expiry| expiry <= clock::now_ms());
    !expired && key.revoked_at.is_none()
}

fn invalid() -> Error {
    unauthenticated("The API key is not valid.")
}

fn too_many(retry_after: Duration) -> Error {
    let message = "Too many requests for this key; wait and try again.";
    Error::new(ErrorReason::RateLimited, message).with_retry_after(retry_after)
}

fn unauthenticated(message: &str) -> Error {
    Error::new(ErrorReason::Unauthenticated, message)
}

/// The token of `Authorization: Bearer …`; the scheme's case does not matter.
fn bearer(headers: &HeaderMap) -> Result<&str> {
    let value = headers
        .get(http::header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let token = value
        .and_then(|value| value.split_once(' '))
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    match token.map(|(_, token)| token.trim()) {
        Some(token) if !token.is_empty() => Ok(token),
        _ => Err(unauthenticated(
            "The request needs the header `Authorization: Bearer <API key>`.",
        )),
    }
}

fn check_plan(holder: &Authentication) -> Result<()> {
    let plan = &holder.organization.plan;
    if !plan.active {
        return Err(Error::new(
            ErrorReason::PlanLimitExceeded,
            "The organization has no active plan.",
        ));
    }
    if !plan.api_access {
        return Err(Error::new(
            ErrorReason::ApiAccessDenied,
            "The plan has no API access.",
        ));
    }
    Ok(())
}

fn check_scope(holder: &KeyHolder, scope: Scope) -> Result<()> {
    if holds(&holder.key, scope) {
        return Ok(());
    }
    let word = Scope::to_word(i32::from(scope)).unwrap_or_default();
    let message = format!("The API key lacks the scope {word}.");
    Err(Error::new(ErrorReason::MissingScope, message))
}
