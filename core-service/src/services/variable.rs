//! Variables: named values, some of them secret, set by their names.

use contract::scope::{VariableRead, VariableWrite};
use contract::v1::{self, ErrorReason};

use super::{Services, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::store::{StoreError, Variable};
use crate::variables::{Owner, SetVariableError, Setting};

/// The most that the list holds.
const MOST_LISTED: i64 = 500;

pub(super) struct Variables {
    services: Services,
}

contract::variable_service_methods!(service, Variables);

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
        let setting = Setting {
            organization_id: caller.organization_id(),
            owner: Owner::Team(request.team_id.as_deref()),
            name: &request.id,
            value: request.value.as_deref().filter(|value| !value.trim().is_empty()),
            is_secret: request.is_secret.unwrap_or_default(),
        };
        let set = self.services.variables.set(&caller.actor(), setting, None).await;
        let set = set.map_err(refusal)?;
        self.services.targets.forget();
        let result = v1::SetVariableResult {
            id: set.id,
            name: request.id,
            is_secret: set.is_secret,
            team_id: set.team_id,
            updated_at: set.updated_at,
            created: set.created,
        };
        Ok(v1::SetVariableResponse { data: Some(result) })
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
        // Secrets of webhooks may be made of it.
        self.services.targets.forget();
        Ok(v1::DeleteVariableResponse {
            data: Some(v1::Acknowledgement { ok: true }),
        })
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

fn refusal(error: SetVariableError) -> Error {
    match error {
        SetVariableError::MissingValue | SetVariableError::ShortSecret => {
            Error::invalid("value", error.to_string())
        }
        SetVariableError::Contended => Error::new(
            ErrorReason::Conflict,
            "The variable is being made and deleted by others; try again.",
        ),
        SetVariableError::Store(error) => unknown_team(error),
        SetVariableError::Secret(error) => error.into(),
    }
}

/// What a write refuses because a named team is not the organization's.
pub(super) fn unknown_team(error: StoreError) -> Error {
    match error {
        StoreError::NotFound("team") => Error::invalid("teamId", "must name a team of the organization"),
        other => other.into(),
    }
}
