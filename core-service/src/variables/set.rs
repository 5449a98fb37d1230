//! Setting variables: by name, made when there is none, sealed when secret. For the service and for nodes.

use super::{SEALED_AS, Variables};
use crate::id;
use crate::secret::{Place, SecretError};
use crate::store::{Actor, Effect, NewVariable, StoreError, Variable, VariableWrite};

/// The fewest characters of a secret: shorter ones could be guessed, and masking them would garble outputs.
const SHORTEST_SECRET: usize = 6;
/// How often a set is tried while others make and delete variables of the same name.
const TRIES: usize = 8;

/// Whose variable is to be set, by name.
#[derive(Clone, Copy)]
pub enum Owner<'a> {
    /// The organization's, or that of one of its teams.
    Team(Option<&'a str>),
    /// What this workflow's runs see. A new variable is the organization's, or that of the workflow's team when this is
    /// not the default one.
    Workflow(&'a str),
}

/// What is to be set.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// The organization.
    pub organization_id: &'a str,
    /// Whose variable.
    pub owner: Owner<'a>,
    /// Its name.
    pub name: &'a str,
    /// None when it is blank: then an existing secret keeps its value.
    pub value: Option<&'a str>,
    /// What a new variable is. One that is there stays what it is.
    pub is_secret: bool,
}

/// A variable that was set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableSetting {
    /// `var_`
    pub id: String,
    /// The team it belongs to.
    pub team_id: Option<String>,
    /// Whether it is secret.
    pub is_secret: bool,
    /// Epoch milliseconds.
    pub updated_at: i64,
    /// Whether it is new.
    pub created: bool,
}

/// A variable that was not set.
#[derive(Debug, thiserror::Error)]
pub enum SetVariableError {
    /// There is no value, and no secret that could keep its own.
    #[error("is required; only an existing secret keeps its own")]
    MissingValue,
    /// The value of a secret is too short.
    #[error("must have at least {SHORTEST_SECRET} characters, because it is secret")]
    ShortSecret,
    /// Others make and delete it all the time.
    #[error("the variable is being made and deleted by others")]
    Contended,
    /// The team is not the organization's, or the database fails.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The value cannot be sealed.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

impl Variables {
    /// Sets a variable by its name, and lets runs that start here know. Under an effect it is set once, and the first
    /// time given from then on.
    ///
    /// # Errors
    /// [`SetVariableError`]
    pub async fn set(
        &self,
        actor: &Actor,
        setting: Setting<'_>,
        effect: Option<&Effect<'_>>,
    ) -> Result<VariableSetting, SetVariableError> {
        // Another caller may make or delete it between the look and the write; then what is to be done is another thing.
        for _ in 0..TRIES {
            let (found, team_id) = self.find(setting).await?;
            let done = match found {
                Some(existing) => self.replace(actor, setting, effect, existing).await?,
                None => self.create(actor, setting, effect, team_id).await?,
            };
            if let Some(done) = done {
                self.forget();
                return Ok(done);
            }
        }
        Err(SetVariableError::Contended)
    }

    /// The variable, and the team that a new one would belong to.
    async fn find(&self, setting: Setting<'_>) -> Result<(Option<Variable>, Option<String>), StoreError> {
        let Setting {
            organization_id,
            name,
            ..
        } = setting;
        match setting.owner {
            Owner::Team(team_id) => {
                let found = self.store.find_variable(organization_id, team_id, name).await?;
                Ok((found, team_id.map(str::to_owned)))
            }
            Owner::Workflow(workflow_id) => {
                self.store
                    .variable_seen_by(organization_id, workflow_id, name)
                    .await
            }
        }
    }

    /// Makes the variable; nothing when somebody else has made it meanwhile.
    async fn create(
        &self,
        actor: &Actor,
        setting: Setting<'_>,
        effect: Option<&Effect<'_>>,
        team_id: Option<String>,
    ) -> Result<Option<VariableSetting>, SetVariableError> {
        let Setting {
            organization_id,
            is_secret,
            ..
        } = setting;
        let value = setting.value.ok_or(SetVariableError::MissingValue)?;
        let id = id::new(id::Kind::Variable);
        let stored = self.stored(organization_id, &id, is_secret, value).await?;
        let new = NewVariable {
            id: &id,
            name: setting.name,
            team_id: team_id.as_deref(),
            is_secret,
            value: &stored,
        };
        let created = match effect {
            None => self.store.create_variable(actor, organization_id, &new).await?,
            Some(effect) => {
                let write = VariableWrite::Create(&new);
                self.store
                    .write_variable_once(actor, organization_id, effect, write)
                    .await?
            }
        };
        Ok(created.map(|updated_at| VariableSetting {
            id,
            team_id,
            is_secret,
            updated_at,
            created: true,
        }))
    }

    /// Sets the variable that is there; nothing when it has been deleted meanwhile.
    async fn replace(
        &self,
        actor: &Actor,
        setting: Setting<'_>,
        effect: Option<&Effect<'_>>,
        existing: Variable,
    ) -> Result<Option<VariableSetting>, SetVariableError> {
        let Variable {
            id,
            is_secret,
            team_id,
            ..
        } = existing;
        let organization_id = setting.organization_id;
        let stored = match setting.value {
            Some(value) => Some(self.stored(organization_id, &id, is_secret, value).await?),
            None if is_secret => None,
            None => return Err(SetVariableError::MissingValue),
        };
        let written = match (effect, &stored) {
            (Some(effect), Some(value)) => {
                let write = VariableWrite::Set { id: &id, value };
                self.store
                    .write_variable_once(actor, organization_id, effect, write)
                    .await
            }
            _ => {
                let set = self
                    .store
                    .set_variable(actor, organization_id, &id, stored.as_deref());
                set.await.map(Some)
            }
        };
        let updated_at = match written {
            Ok(Some(updated_at)) => updated_at,
            Ok(None) | Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok(Some(VariableSetting {
            id,
            team_id,
            is_secret,
            updated_at,
            created: false,
        }))
    }

    /// A value as the database holds it.
    async fn stored(
        &self,
        organization_id: &str,
        variable_id: &str,
        is_secret: bool,
        value: &str,
    ) -> Result<Vec<u8>, SetVariableError> {
        if !is_secret {
            return Ok(value.as_bytes().to_vec());
        }
        if value.chars().count() < SHORTEST_SECRET {
            return Err(SetVariableError::ShortSecret);
        }
        let place = Place {
            organization_id,
            kind: SEALED_AS,
            id: variable_id,
        };
        Ok(self.vault.seal(place, value.as_bytes()).await?)
    }
}
