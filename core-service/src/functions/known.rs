//! Functions by name, as templates are compiled against them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

use engine::expression::CustomFunctions;
use engine::graph::{FrozenFunction, FrozenParameter};
use serde::Deserialize;

use crate::store::Function;

/// The functions that a workflow may call. Remembers which of them it was asked for.
pub struct Known {
    /// By id.
    functions: HashMap<String, FrozenFunction>,
    /// Ids by name.
    names: HashMap<String, String>,
    used: Mutex<BTreeSet<String>>,
}

/// A parameter as it is stored.
#[derive(Deserialize)]
struct StoredParameter {
    name: String,
    #[serde(default)]
    required: bool,
}

impl Known {
    /// No functions.
    #[must_use]
    pub fn none() -> Self {
        Self::of(Vec::new())
    }

    /// These functions; a team's is called in place of the organization's with the same name.
    #[must_use]
    pub fn of(mut functions: Vec<Function>) -> Self {
        functions.sort_by_key(|function| function.team_id.is_some());
        let names = functions
            .iter()
            .map(|function| (function.name.clone(), function.id.clone()))
            .collect();
        let functions = functions
            .into_iter()
            .map(|function| (function.id.clone(), freeze(function)));
        Self {
            functions: functions.collect(),
            names,
            used: Mutex::default(),
        }
    }

    /// The functions that were asked for so far: those that the templates compiled since call.
    #[must_use]
    pub fn used(&self) -> Vec<FrozenFunction> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter()
            .filter_map(|id| self.functions.get(id))
            .cloned()
            .collect()
    }

    fn note(&self, id: &str) -> Option<&FrozenFunction> {
        let function = self.functions.get(id)?;
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.insert(id.to_owned());
        Some(function)
    }
}

impl CustomFunctions for Known {
    fn parameter_count(&self, name: &str) -> Option<(usize, usize)> {
        self.note(self.names.get(name)?)
            .map(FrozenFunction::argument_count)
    }

    fn by_id(&self, id: &str) -> Option<FrozenFunction> {
        self.note(id).cloned()
    }
}

/// The functions that a graph froze.
pub struct Frozen(pub Vec<FrozenFunction>);

impl CustomFunctions for Frozen {
    fn parameter_count(&self, name: &str) -> Option<(usize, usize)> {
        let mut functions = self.0.iter();
        functions
            .find(|function| function.name == name)
            .map(FrozenFunction::argument_count)
    }

    fn by_id(&self, id: &str) -> Option<FrozenFunction> {
        self.0.iter().find(|function| function.id == id).cloned()
    }
}

/// A function as a graph freezes it. Parameters that cannot be read are none.
fn freeze(function: Function) -> FrozenFunction {
    let parameters: Vec<StoredParameter> = serde_json::from_slice(&function.parameters).unwrap_or_default();
    let parameters = parameters.into_iter().map(|parameter| FrozenParameter {
        name: parameter.name,
        required: parameter.required,
    });
    FrozenFunction {
        id: function.id,
        name: function.name,
        parameters: parameters.collect(),
        code: function.code,
    }
}
