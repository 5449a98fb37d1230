//! What runs reach outside themselves without executing anything: variables and custom functions.

use std::collections::BTreeMap;

use engine::expression::{CustomFunctions, EvaluationError};
use engine::scope::Environment;
use scenarios::{Function, Scenario};
use serde_json::{Value, json};

/// The functions that a graph may call.
pub(crate) struct Functions<'a>(pub(crate) &'a Scenario);

impl CustomFunctions for Functions<'_> {
    fn parameter_count(&self, name: &str) -> Option<(usize, usize)> {
        let count = self.0.functions.get(name)?.parameters.len();
        Some((count, count))
    }
}

/// What runs reach outside themselves.
pub(crate) struct Surroundings {
    functions: BTreeMap<String, Function>,
    variables: BTreeMap<String, Value>,
    secrets: Vec<String>,
    run: Value,
    workflow: Value,
}

impl Surroundings {
    pub(crate) fn of(scenario: &Scenario) -> Self {
        let mut surroundings = Self {
            functions: scenario.functions.clone(),
            variables: BTreeMap::new(),
            secrets: scenario.secrets.values().cloned().collect(),
            run: json!({ "attemptNumber": 1 }),
            workflow: json!({ "name": scenario.name }),
        };
        surroundings.set(&scenario.variables);
        surroundings.set(&scenario.secrets);
        surroundings
    }

    pub(crate) fn set(&mut self, variables: &BTreeMap<String, String>) {
        let variables = variables.iter();
        self.variables
            .extend(variables.map(|(name, value)| (name.clone(), Value::from(value.as_str()))));
    }
}

impl Environment for Surroundings {
    fn run(&self) -> &Value {
        &self.run
    }

    fn workflow(&self) -> &Value {
        &self.workflow
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        let calls = self
            .functions
            .get(name)
            .into_iter()
            .flat_map(|function| &function.calls);
        let told = calls
            .filter(|call| call.with == arguments)
            .map(|call| (&call.gives, &call.fails));
        match told.into_iter().next() {
            Some((Some(value), None)) => Ok(value.clone()),
            Some((None, Some((code, message)))) => {
                Err(EvaluationError::with_code(code.clone(), message.clone()))
            }
            _ => panic!("it is not told what {name} gives for {arguments:?}"),
        }
    }

    fn mask(&self, output: &mut Value) {
        match output {
            Value::String(text) => self.mask_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask(field)),
            _ => {}
        }
    }

    fn mask_text(&self, message: &mut String) {
        for secret in &self.secrets {
            *message = message.replace(secret, "***");
        }
    }
}
