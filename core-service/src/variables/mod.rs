//! Variables: what `$vars.NAME` gives to a workflow's runs, and the secrets to keep out of their records.
//!
//! Looked up once in a while for each workflow whose plan reads any; a change made on this node holds at once, one made
//! on another within a second. Set here, by the service and by nodes. Absent on
//! purpose: listing and deleting them, which the service does.

mod set;
mod surroundings;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

pub use set::{Owner, SetVariableError, Setting, VariableSetting};
pub use surroundings::WithVariables;

use crate::lookups::Lookups;
use crate::secret::{Mask, Place, SecretError, Vault};
use crate::store::{Store, Variable};

/// How long the variables of a workflow are believed on nodes other than the one that changed them: with the look-up, a
/// change is everywhere within a second.
const BELIEVED: Duration = Duration::from_millis(800);
/// Workflows whose variables are kept.
const MOST_WORKFLOWS: u64 = 10_000;

/// The kind of place that a secret variable's value is sealed for.
const SEALED_AS: &str = "variable";

/// Looks variables up. Cheap to clone.
#[derive(Clone)]
pub struct Variables {
    store: Store,
    vault: Vault,
    /// By organization and workflow.
    known: Lookups<(String, String), Arc<VariableSet>, Arc<SecretError>>,
}

/// The variables that one workflow's runs see.
#[derive(Default)]
pub struct VariableSet {
    values: HashMap<String, Value>,
    secrets: HashSet<String>,
    mask: Mask,
}

impl Variables {
    /// Looks variables up in this store.
    pub fn new(store: Store, vault: Vault) -> Self {
        Self {
            store,
            vault,
            known: Lookups::for_a_while(MOST_WORKFLOWS, BELIEVED),
        }
    }

    /// What a workflow's runs see: its team's variables first, then the organization's.
    ///
    /// # Errors
    /// When the database cannot be used or a secret cannot be opened.
    pub async fn of_workflow(
        &self,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<Arc<VariableSet>, Arc<SecretError>> {
        let key = (organization_id.to_owned(), workflow_id.to_owned());
        let load = async || self.load(organization_id, workflow_id).await.map_err(Arc::new);
        self.known.find(&key, load).await
    }

    /// As `of_workflow`, as they are in the database now: for what is itself believed for a while.
    ///
    /// # Errors
    /// As `of_workflow`.
    pub async fn of_workflow_now(
        &self,
        organization_id: &str,
        workflow_id: &str,
    ) -> Result<Arc<VariableSet>, Arc<SecretError>> {
        self.load(organization_id, workflow_id).await.map_err(Arc::new)
    }

    /// Forgets what was looked up, so that a change made here holds at once.
    pub fn forget(&self) {
        self.known.forget();
    }

    async fn load(&self, organization_id: &str, workflow_id: &str) -> Result<Arc<VariableSet>, SecretError> {
        let mut rows = self
            .store
            .workflow_variables(organization_id, workflow_id)
            .await?;
        // A team's variable comes last and replaces the organization's of the same name.
        rows.sort_by_key(|row| row.team_id.is_some());
        let mut set = VariableSet::default();
        let mut texts = HashMap::new();
        for row in rows {
            let text = self.text(organization_id, &row).await?;
            match row.is_secret {
                true => set.secrets.insert(row.name.clone()),
                false => set.secrets.remove(&row.name),
            };
            texts.insert(row.name, text);
        }
        set.mask = Mask::of(
            texts
                .iter()
                .filter(|(name, _)| set.secrets.contains(*name))
                .map(|(_, text)| text.as_str()),
        );
        set.values = texts
            .into_iter()
            .map(|(name, text)| (name, Value::String(text)))
            .collect();
        Ok(Arc::new(set))
    }

    async fn text(&self, organization_id: &str, variable: &Variable) -> Result<String, SecretError> {
        if !variable.is_secret {
            return String::from_utf8(variable.value.clone()).map_err(|_| SecretError::Damaged);
        }
        let place = Place {
            organization_id,
            kind: SEALED_AS,
            id: &variable.id,
        };
        let text = self.vault.open_text(place, &variable.value).await?;
        Ok(text.expose().to_owned())
    }
}

impl VariableSet {
    /// The value of a variable, secrets included: for nodes that execute, and for nobody else.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// The value of a variable that is not secret.
    pub fn get_public(&self, name: &str) -> Option<&Value> {
        self.values.get(name).filter(|_| !self.is_secret(name))
    }

    /// Whether there is a secret of this name.
    pub fn is_secret(&self, name: &str) -> bool {
        self.secrets.contains(name)
    }

    /// Replaces the values of secrets inside a value.
    pub fn mask(&self, value: &mut Value) {
        self.mask.value(value);
    }

    /// Replaces the values of secrets inside a text.
    pub fn mask_text(&self, text: &mut String) {
        self.mask.text(text);
    }
}
