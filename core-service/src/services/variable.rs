//! Variables: named values, some of them secret, set by their names.

use contract::scope::{VariableRead, VariableWrite};
use contract::v1::{self, ErrorReason};

use super::{Services, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::id;
use crate::secret::Place;
use crate::store::{NewVariable, StoreError, Variable};
use crate::variables::SEALED_AS;

/// The most that the list holds.
const MOST_LISTED: i64 = 500;
/// The fewest characters of a secret: shorter ones could be guessed, and masking them would garble outputs.
const SHORTEST_SECRET: usize = 6;
/// How often a set is tried while others make and delete variables of the same name.
const TRIES: usize = 8;

pub(super) struct Variables {
    services: Services,
}

contract::variable_service_methods!(service, Variables);

/// What a request sets, checked as far as it can be without the database.
struct Wish<'a> {
    organization_id: &'a str,
    team_id: Option<&'a str>,
    name: &'a str,
    /// None when it is blank: then an existing secret keeps its value.
    value: Option<&'a str>,
    /// What a new variable is.
    is_secret: bool,
}

impl Variables {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_variables(
        &self,
        caller: Authorized<VariableRead>,
        _request: v1::ListVariablesRequest,
    ) -> Result<v1::ListVariablesResponse> {
        let store = &self.services.store;
        let rows = store
            .list_variables(caller.organization_id(), MOST_LISTED)
            .await?;
        Ok(v1::ListVariablesResponse {
            data: rows.into_iter().map(shown).collect::<Result<_>>()?,
        })
    }

    async fn get_variable(
        &self,
        caller: Authorized<VariableRead>,
        request: v1::GetVariableRequest,
    ) -> Result<v1::GetVariableResponse> {
        let store = &self.services.store;
        let row = store.variable(caller.organization_id(), &request.id).await?;
        Ok(v1::GetVariableResponse {
            data: Some(shown(row)?),
        })
    }

    async fn set_variable(
        &self,
        caller: Authorized<VariableWrite>,
        request: v1::SetVariableRequest,
    ) -> Result<v1::SetVariableResponse> {
        let wish = Wish {
            organization_id: caller.organization_id(),
            team_id: request.team_id.as_deref(),
            name: &request.id,
            value: request.value.as_deref().filter(|value| !value.trim().is_empty()),
            is_secret: request.is_secret.unwrap_or_default(),
        };
        // Another caller may make or delete it between the look and the write; then what is to be done is another thing.
        for _ in 0..TRIES {
            let store = &self.services.store;
            let found = store
                .find_variable(wish.organization_id, wish.team_id, wish.name)
                .await
                .map_err(unknown_team)?;
            let done = match found {
                Some(existing) => self.replace(&caller, &wish, existing).await?,
                None => self.create(&caller, &wish).await?,
            };
            if let Some(result) = done {
                self.services.variables.forget();
                return Ok(v1::SetVariableResponse { data: Some(result) });
            }
        }
        Err(Error::new(
            ErrorReason::Conflict,
            "The variable is being made and deleted by others; try again.",
        ))
    }

    async fn delete_variable(
        &self,
        caller: Authorized<VariableWrite>,
        request: v1::DeleteVariableRequest,
    ) -> Result<v1::DeleteVariableResponse> {
        let store = &self.services.store;
        store
            .delete_variable(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        self.services.variables.forget();
        Ok(v1::DeleteVariableResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
    }

    /// Makes the variable; nothing when somebody else has made it meanwhile.
    async fn create(
        &self,
        caller: &Authorized<VariableWrite>,
        wish: &Wish<'_>,
    ) -> Result<Option<v1::SetVariableResult>> {
        let value = wish.value.ok_or_else(missing_value)?;
        let variable_id = id::new(id::Kind::Variable);
        let stored = self.stored(wish, &variable_id, wish.is_secret, value).await?;
        let new = NewVariable {
            id: &variable_id,
            name: wish.name,
            team_id: wish.team_id,
            is_secret: wish.is_secret,
            value: &stored,
        };
        let store = &self.services.store;
        let created = store
            .create_variable(&caller.actor(), wish.organization_id, &new)
            .await
            .map_err(unknown_team)?;
        Ok(created.map(|created_at| wish.result(variable_id, wish.is_secret, created_at, true)))
    }

    /// Sets the variable that is there; nothing when it has been deleted meanwhile.
    async fn replace(
        &self,
        caller: &Authorized<VariableWrite>,
        wish: &Wish<'_>,
        existing: Variable,
    ) -> Result<Option<v1::SetVariableResult>> {
        let stored = match wish.value {
            Some(value) => Some(self.stored(wish, &existing.id, existing.is_secret, value).await?),
            None if existing.is_secret => None,
            None => return Err(missing_value()),
        };
        let store = &self.services.store;
        let written = store
            .set_variable(
                &caller.actor(),
                wish.organization_id,
                &existing.id,
                stored.as_deref(),
            )
            .await;
        match written {
            Ok(updated_at) => Ok(Some(wish.result(
                existing.id,
                existing.is_secret,
                updated_at,
                false,
            ))),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// A value as the database holds it.
    async fn stored(
        &self,
        wish: &Wish<'_>,
        variable_id: &str,
        is_secret: bool,
        value: &str,
    ) -> Result<Vec<u8>> {
        if !is_secret {
            return Ok(value.as_bytes().to_vec());
        }
        if value.chars().count() < SHORTEST_SECRET {
            let message = format!("must have at least {SHORTEST_SECRET} characters, because it is secret");
            return Err(Error::invalid("value", message));
        }
        let place = Place {
            organization_id: wish.organization_id,
            kind: SEALED_AS,
            id: variable_id,
        };
        Ok(self.services.vault.seal(place, value.as_bytes()).await?)
    }
}

impl Wish<'_> {
    fn result(&self, id: String, is_secret: bool, updated_at: i64, created: bool) -> v1::SetVariableResult {
        v1::SetVariableResult {
            id,
            name: self.name.to_owned(),
            is_secret,
            team_id: self.team_id.map(str::to_owned),
            updated_at,
            created,
        }
    }
}

fn shown(variable: Variable) -> Result<v1::Variable> {
    let value = match variable.is_secret {
        true => None,
        false => Some(String::from_utf8(variable.value).map_err(Error::internal)?),
    };
    Ok(v1::Variable {
        id: variable.id,
        name: variable.name,
        is_secret: variable.is_secret,
        value,
        team_id: variable.team_id,
        created_at: variable.created_at,
        updated_at: variable.updated_at,
    })
}

fn missing_value() -> Error {
    Error::invalid("value", "is required; only an existing secret keeps its own")
}

/// What a write refuses because a named team is not the organization's.
pub(super) fn unknown_team(error: StoreError) -> Error {
    match error {
        StoreError::NotFound("team") => Error::invalid("teamId", "must name a team of the organization"),
        other => other.into(),
    }
}
