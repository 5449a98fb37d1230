//! What an expression gives, seen from a node of a past run.
//!
//! Whatever is wrong with the expression or the run is part of the answer, not an error of the request: an editor asks
//! this while a person types.

use contract::scope::WorkflowRead;
use contract::v1;
use engine::expression::{EvaluationError, Root, Scope, Template};
use engine::graph::FrozenFunction;
use serde_json::{Value, json};

use super::Workflows;
use crate::auth::Authorized;
use crate::clock;
use crate::error::{Error, Result};
use crate::functions::call_all;
use crate::runtime::{Calls, Report};
use crate::variables::VariableSet;

/// The longest string that is given whole, in characters.
const MAX_CHARACTERS: usize = 10_000;

impl Workflows {
    pub(super) async fn resolve_expression(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::ResolveExpressionRequest,
    ) -> Result<v1::ResolveExpressionResponse> {
        let workflow = self
            .services
            .store
            .workflow(caller.organization_id(), &request.id)
            .await?;
        let from = request.from_node_id.as_deref().map(str::parse::<i64>).transpose();
        let from = from.map_err(|_| Error::invalid("fromNodeId", "must be the number of a node, as text"))?;
        let report = self.run_to_read(&caller, &request).await?;
        let variables = self
            .services
            .variables
            .of_workflow(caller.organization_id(), &request.id)
            .await;
        let variables = variables.map_err(Error::from)?;
        let callable = self
            .services
            .callable(caller.organization_id(), &request.id)
            .await?;
        let prepared = report.and_then(|report| {
            let template = Template::parse_reference(&request.expression, &callable);
            let template = template.map_err(|error| error.to_string())?;
            if let Some(secret) = template
                .variable_references()
                .find(|name| variables.is_secret(name))
            {
                return Err(format!(
                    "{secret} is secret: it resolves only while a node executes"
                ));
            }
            Ok((report, template))
        });
        let result = match prepared {
            Ok((report, template)) => match Place::new(&report, from, &workflow.name, &variables) {
                Ok(place) => {
                    let functions = callable.used();
                    self.evaluate(caller.organization_id(), &template, &place, &functions)
                        .await
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        Ok(v1::ResolveExpressionResponse {
            data: Some(answer(result)?),
        })
    }

    /// The value of an expression. Custom functions answer in between, as often as it takes.
    async fn evaluate(
        &self,
        organization_id: &str,
        template: &Template,
        place: &Place<'_>,
        functions: &[FrozenFunction],
    ) -> Result<Value, String> {
        loop {
            match template.evaluate(place) {
                Err(error) if error.is_unanswered() => {}
                evaluated => return evaluated.map_err(|error| error.to_string()),
            }
            let wanted = place.calls.wanted();
            let sandbox = &self.services.sandbox;
            place
                .calls
                .answer(call_all(sandbox, organization_id, functions, wanted).await);
        }
    }

    /// The run whose outputs are read, or why there is none.
    async fn run_to_read(
        &self,
        caller: &Authorized<WorkflowRead>,
        request: &v1::ResolveExpressionRequest,
    ) -> Result<Result<Report, String>> {
        let store = &self.services.store;
        let run_id = match &request.run_id {
            Some(run_id) => run_id.clone(),
            None => match store
                .list_runs(caller.organization_id(), &request.id, None, None, 1)
                .await?
                .pop()
            {
                Some(latest) => latest.id,
                None => return Ok(Err("the workflow has no runs yet; start one first".to_owned())),
            },
        };
        let foreign = || "there is no such run of this workflow".to_owned();
        match self
            .services
            .runtime
            .report(caller.organization_id(), &run_id)
            .await
        {
            Ok(report) if report.run.workflow_id.as_ref() == Some(&request.id) => Ok(Ok(report)),
            Ok(_) | Err(crate::runtime::ReportError::NotFound) => Ok(Err(foreign())),
            Err(error) => Err(error.into()),
        }
    }
}

fn answer(result: Result<Value, String>) -> Result<v1::ResolveExpressionResult> {
    let (value, error) = match result {
        Ok(value) => (value, None),
        Err(error) => (Value::Null, Some(error)),
    };
    let (value, truncated) = cut(value);
    let resolved_type = type_of(&value).map(str::to_owned);
    let json = serde_json::to_string(&value).map_err(Error::internal)?;
    let resolved = resolved_type.is_some().then_some(v1::JsonValue { json });
    Ok(v1::ResolveExpressionResult {
        resolved,
        resolved_type,
        truncated,
        error,
    })
}

fn cut(value: Value) -> (Value, bool) {
    match value {
        Value::String(text) => match text.char_indices().nth(MAX_CHARACTERS) {
            Some((end, _)) => (Value::String(text[..end].to_owned()), true),
            None => (Value::String(text), false),
        },
        other => (other, false),
    }
}

/// The JSON type of a value; nothing for null.
fn type_of(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some("boolean"),
        Value::Number(_) => Some("number"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
    }
}

/// The place of a node in a past run.
struct Place<'a> {
    report: &'a Report,
    variables: &'a VariableSet,
    /// The nodes above the place; all of them when none is named.
    above: Option<Vec<i64>>,
    run: Value,
    workflow: Value,
    now: i64,
    calls: Calls,
}

impl<'a> Place<'a> {
    fn new(
        report: &'a Report,
        from: Option<i64>,
        workflow_name: &str,
        variables: &'a VariableSet,
    ) -> Result<Self, String> {
        let plan = report.state.plan();
        let unknown = from.filter(|id| plan.node(*id).is_none());
        if let Some(id) = unknown {
            return Err(format!("the run's graph has no node {id}"));
        }
        let (run, workflow) = roots(report, workflow_name);
        Ok(Self {
            report,
            variables,
            above: from.map(|id| plan.ancestor_ids(id)),
            run,
            workflow,
            now: clock::now_ms(),
            calls: Calls::default(),
        })
    }
}

/// `$run` and `$workflow` of a past run.
pub(super) fn roots(report: &Report, workflow_name: &str) -> (Value, Value) {
    let run = &report.run;
    let created_at = jiff::Timestamp::from_millisecond(run.created_at).unwrap_or_default();
    let root = json!({
        "id": run.id,
        "attemptNumber": run.attempt_number,
        "trigger": report.trigger,
        "createdAt": format!("{created_at:.3}"),
    });
    (root, json!({ "id": run.workflow_id, "name": workflow_name }))
}

impl Scope for Place<'_> {
    fn node(&self, id: i64) -> Option<&Value> {
        let visible = self.above.as_ref().is_none_or(|above| above.contains(&id));
        visible
            .then(|| self.report.state.output(id))
            .flatten()
            .map(|output| &**output)
    }

    fn root(&self, name: Root) -> Option<&Value> {
        match name {
            Root::Run => Some(&self.run),
            Root::Workflow => Some(&self.workflow),
            Root::Item | Root::Error => None,
        }
    }

    fn index(&self) -> Option<i64> {
        None
    }

    fn now(&self) -> i64 {
        self.now
    }

    fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get_public(name)
    }

    fn call_custom(&self, name: &str, arguments: Vec<Value>) -> Result<Value, EvaluationError> {
        self.calls.ask(name, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_strings_are_cut_between_characters() {
        let (value, truncated) = cut(Value::String("ä".repeat(MAX_CHARACTERS + 1)));
        assert!(truncated);
        assert_eq!(
            value.as_str().map(|text| text.chars().count()),
            Some(MAX_CHARACTERS)
        );
        assert!(!cut(Value::String("ä".repeat(MAX_CHARACTERS))).1);
    }

    #[test]
    fn null_has_no_type() {
        assert_eq!(type_of(&Value::Null), None);
        assert_eq!(type_of(&json!([])), Some("array"));
    }
}
