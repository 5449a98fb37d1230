//! `human_input`: waits until a person answers.
//!
//! The node is parked with what it asks; `people` brings the answer. A form is checked when it is saved as far as it is
//! literal, and again when it is asked.

use std::collections::HashSet;

use engine::expression::{CompiledValue, CustomFunctions, ParseError};
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, External, Kind, NodeSpec};
use engine::params::{Completeness, FieldSpec, FieldType as ParamType, ParamProblem};
use engine::scope::NodeScope;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{BoxFuture, Executed, Execution, Executor};
use crate::clock;
use crate::form::{Field, FieldType, Question};

/// The kind's name.
pub const KIND: &str = "human_input";

/// Longest wait for an answer: ten years, in milliseconds.
const MAX_TIMEOUT_MS: i64 = 3_652 * 86_400_000;
const MAX_FIELDS: usize = 100;
const MAX_ASSIGNEES: usize = 100;
/// Longest name, label, title and assignee, in characters.
const MAX_TEXT: usize = 200;
/// Longest message, in characters.
const MAX_MESSAGE: usize = 10_000;

/// The kind.
pub(super) struct HumanInput;

impl Kind for HumanInput {
    fn spec(&self) -> NodeSpec {
        NodeSpec::flow(
            KIND,
            "Human input",
            "Waits until a person answers a form, by the API or by a one-time link. Output: response (the fields' values \
             by name), respondedBy (the user who answered; null for an answer by link) and respondedAt (ISO-8601). \
             Without an answer in time the node fails as NODE_TIMEOUT, or with onTimeout continue completes with these \
             three null and timedOut true.",
        )
        .with_shape([
            FieldSpec::optional("title", ParamType::String, "What is asked, in a few words; the node's name by default."),
            FieldSpec::optional("message", ParamType::String, "What is asked, in full."),
            FieldSpec::optional(
                "fields",
                ParamType::Array,
                "What an answer holds: objects of name, type (text, number, integer, boolean, date, datetime, json, email, \
                 url, array, object, any), required (false by default) and label (the name by default).",
            ),
            FieldSpec::optional(
                "assignees",
                ParamType::Array,
                "Who should answer, such as emails: shown, and a filter of the list of open requests. Anyone with the \
                 link can answer.",
            ),
            FieldSpec::optional("timeoutMs", ParamType::Integer, "Milliseconds to wait for an answer; without end by default."),
            FieldSpec::optional(
                "onTimeout",
                ParamType::choice(&["fail", "continue"]),
                "What follows when nobody answers in time; fail by default.",
            ),
        ])
        .with_example(json!({
            "title": "Approve order {{1.body.id}}",
            "message": "The total is {{1.body.total}}.",
            "fields": [
                { "name": "approved", "type": "boolean", "required": true, "label": "Approve?" },
                { "name": "comment", "type": "text", "label": "Comment" },
            ],
            "assignees": ["ada@example.com"],
            "timeoutMs": 86_400_000,
            "onTimeout": "fail",
        }))
    }

    fn check(&self, params: &Map<String, Value>, completeness: Completeness) -> Vec<ParamProblem> {
        let mut problems = Vec::new();
        let fields = params.get("fields").and_then(Value::as_array);
        for (place, field) in fields.into_iter().flatten().enumerate() {
            let found = field_problems(field, completeness);
            problems.extend(
                found
                    .into_iter()
                    .map(|one| one.under(&format!("fields[{place}]"))),
            );
        }
        if let Some(timeout) = params.get("timeoutMs").filter(|timeout| timeout.is_number())
            && !timeout
                .as_i64()
                .is_some_and(|ms| (1..=MAX_TIMEOUT_MS).contains(&ms))
        {
            problems.push(ParamProblem::new("timeoutMs", timeout_range()));
        }
        // What has no templates must already be a form.
        let literal = !Value::Object(params.clone()).to_string().contains("{{");
        if literal && completeness == Completeness::Complete && problems.is_empty() {
            problems.extend(Request::read(&Value::Object(params.clone()), "").err());
        }
        problems
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        let params = CompiledValue::compile(&Value::Object(node.params.clone()), functions);
        let problem = |(path, error): (String, ParseError)| ParamProblem::new(path, error.to_string());
        let params = params.map_err(|found| found.into_iter().map(problem).collect::<Vec<_>>())?;
        let node_name = node.name.clone();
        Ok(Behaviour::External(Box::new(Asking { node_name, params })))
    }
}

fn is_template(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("{{"))
}

/// What is wrong with a field as far as it is literal.
fn field_problems(field: &Value, completeness: Completeness) -> Vec<ParamProblem> {
    if is_template(field) {
        return Vec::new();
    }
    let Value::Object(members) = field else {
        return vec![ParamProblem::new(
            "",
            "must be an object of name, type, required and label",
        )];
    };
    let mut problems = Vec::new();
    for (name, value) in members {
        let fits = match name.as_str() {
            _ if is_template(value) || value.is_null() => continue,
            "name" | "label" => value.is_string(),
            "type" => value
                .as_str()
                .is_some_and(|word| FieldType::from_word(word).is_some()),
            "required" => value.is_boolean(),
            _ => {
                let message = "is not part of a field; a field has name, type, required and label";
                problems.push(ParamProblem::new(name, message));
                continue;
            }
        };
        if !fits {
            problems.push(ParamProblem::new(name, expectation(name)));
        }
    }
    if completeness == Completeness::Complete {
        let missing = |name: &&str| members.get(*name).is_none_or(Value::is_null);
        let missing = ["name", "type"].into_iter().filter(missing);
        problems.extend(missing.map(|name| ParamProblem::new(name, "is required")));
    }
    problems
}

fn expectation(member: &str) -> String {
    match member {
        "type" => {
            let words: Vec<_> = FieldType::ALL.iter().map(|one| one.as_word()).collect();
            format!("must be one of {}", words.join(", "))
        }
        "required" => "must be true or false".to_owned(),
        _ => "must be text".to_owned(),
    }
}

fn timeout_range() -> String {
    format!("must be from 1 to {MAX_TIMEOUT_MS}")
}

/// The parameters of a node, compiled.
struct Asking {
    node_name: String,
    params: CompiledValue,
}

impl External for Asking {
    fn request(&self, scope: &dyn NodeScope) -> Result<Value, NodeError> {
        let params = self.params.evaluate(scope)?;
        let request = Request::read(&params, &self.node_name);
        let request = request.map_err(|problem| NodeError::expression(problem.to_string()))?;
        serde_json::to_value(request).map_err(|error| NodeError::expression(error.to_string()))
    }

    fn timed_out(&self, scope: &dyn NodeScope) -> Result<Option<Value>, NodeError> {
        let output = json!({ "response": null, "respondedBy": null, "respondedAt": null, "timedOut": true });
        let Some(on_timeout) = self.params.get("onTimeout") else {
            return Ok(None);
        };
        match on_timeout.evaluate(scope)? {
            Value::Null => Ok(None),
            Value::String(word) if word == "fail" => Ok(None),
            Value::String(word) if word == "continue" => Ok(Some(output)),
            other => Err(NodeError::expression(format!(
                "onTimeout must be fail or continue, not {other:.60}"
            ))),
        }
    }
}

/// What the executor is given.
#[derive(Serialize, Deserialize)]
struct Request {
    question: Question,
    timeout_ms: Option<i64>,
}

impl Request {
    /// Reads evaluated parameters.
    fn read(params: &Value, default_title: &str) -> Result<Self, ParamProblem> {
        let title = text(params, "title", MAX_TEXT)?.filter(|title| !title.is_empty());
        let list = |name: &str, most: usize| match &params[name] {
            Value::Null => Ok(&[][..]),
            Value::Array(items) if items.len() <= most => Ok(items.as_slice()),
            Value::Array(_) => Err(ParamProblem::new(name, format!("must have at most {most} items"))),
            _ => Err(ParamProblem::new(name, "must be an array")),
        };
        let mut names = HashSet::new();
        let mut fields = Vec::new();
        for (place, item) in list("fields", MAX_FIELDS)?.iter().enumerate() {
            let field = read_field(item).map_err(|one| one.under(&format!("fields[{place}]")))?;
            if !names.insert(field.name.clone()) {
                let path = format!("fields[{place}].name");
                return Err(ParamProblem::new(
                    path,
                    "names a field that is in the list already",
                ));
            }
            fields.push(field);
        }
        let mut assignees = Vec::new();
        for (place, item) in list("assignees", MAX_ASSIGNEES)?.iter().enumerate() {
            let usable = |name: &&str| {
                let length = name.chars().count();
                (1..=MAX_TEXT).contains(&length) && !name.chars().any(char::is_control)
            };
            let message = format!("must be text of 1 to {MAX_TEXT} characters without control characters");
            let name = item.as_str().map(str::trim).filter(usable);
            let name = name.ok_or_else(|| ParamProblem::new(format!("assignees[{place}]"), message))?;
            assignees.push(name.to_owned());
        }
        let timeout_ms = match &params["timeoutMs"] {
            Value::Null => None,
            given => Some(
                given
                    .as_i64()
                    .filter(|ms| (1..=MAX_TIMEOUT_MS).contains(ms))
                    .ok_or_else(|| ParamProblem::new("timeoutMs", timeout_range()))?,
            ),
        };
        let question = Question {
            title: title.unwrap_or_else(|| default_title.to_owned()),
            message: text(params, "message", MAX_MESSAGE)?.unwrap_or_default(),
            fields,
            assignees,
        };
        Ok(Self { question, timeout_ms })
    }
}

fn read_field(item: &Value) -> Result<Field, ParamProblem> {
    if let Some(problem) = field_problems(item, Completeness::Complete).into_iter().next() {
        return Err(problem);
    }
    let name = text(item, "name", MAX_TEXT)?.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| ParamProblem::new("name", "must not be empty"))?;
    let field_type = item["type"].as_str().and_then(FieldType::from_word);
    let field_type = field_type.ok_or_else(|| ParamProblem::new("type", expectation("type")))?;
    let required = match &item["required"] {
        Value::Null => false,
        given => given
            .as_bool()
            .ok_or_else(|| ParamProblem::new("required", expectation("required")))?,
    };
    let label = text(item, "label", MAX_TEXT)?.filter(|label| !label.is_empty());
    Ok(Field {
        label: label.unwrap_or_else(|| name.clone()),
        name,
        field_type,
        required,
    })
}

/// A member that must be text, when it is there.
fn text(object: &Value, name: &str, most: usize) -> Result<Option<String>, ParamProblem> {
    match &object[name] {
        Value::Null => Ok(None),
        Value::String(text) if text.chars().count() <= most => Ok(Some(text.clone())),
        Value::String(_) => Err(ParamProblem::new(
            name,
            format!("must have at most {most} characters"),
        )),
        _ => Err(ParamProblem::new(name, "must be text")),
    }
}

/// Parks the node with what it asks.
pub(super) struct Park;

impl Executor for Park {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move {
            let request: Request = serde_json::from_value(execution.request)
                .map_err(|error| NodeError::expression(format!("the form cannot be read: {error}")))?;
            Ok(Executed::Asked {
                question: Box::new(request.question),
                due_at_ms: request.timeout_ms.map(|ms| clock::now_ms().saturating_add(ms)),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(params: Value, completeness: Completeness) -> Vec<String> {
        let Value::Object(params) = params else {
            return Vec::new();
        };
        let problems = HumanInput.check(&params, completeness);
        problems.into_iter().map(|one| one.path).collect()
    }

    #[test]
    fn literal_forms_are_checked_when_they_are_saved() {
        use Completeness::{Complete, Draft};
        let wrong = json!({ "fields": [{ "name": "a", "type": "colour", "size": 1 }, 5], "timeoutMs": 0 });
        let expected = ["fields[0].type", "fields[0].size", "fields[1]", "timeoutMs"];
        assert_eq!(paths(wrong, Draft), expected);
        let unfinished = json!({ "fields": [{ "label": "A" }] });
        assert_eq!(paths(unfinished.clone(), Draft), Vec::<String>::new());
        assert_eq!(paths(unfinished, Complete), ["fields[0].name", "fields[0].type"]);
        let twice = json!({ "fields": [{ "name": "a", "type": "text" }, { "name": "a", "type": "date" }] });
        assert_eq!(paths(twice, Complete), ["fields[1].name"]);
        assert_eq!(
            paths(json!({ "assignees": ["a\nb"] }), Complete),
            ["assignees[0]"]
        );
        let templated = json!({ "fields": [{ "name": "{{1.name}}", "type": "{{1.type}}" }, "{{1.field}}"] });
        assert_eq!(paths(templated, Complete), Vec::<String>::new());
    }

    #[test]
    fn evaluated_forms_have_all_their_parts() -> Result<(), ParamProblem> {
        let request = Request::read(&json!({ "fields": [{ "name": "a", "type": "text" }] }), "Approve")?;
        assert_eq!(
            (request.question.title.as_str(), request.timeout_ms),
            ("Approve", None)
        );
        let field = &request.question.fields[0];
        assert_eq!((field.label.as_str(), field.required), ("a", false));
        for wrong in [
            json!({ "fields": {} }),
            json!({ "fields": [{ "name": "", "type": "text" }] }),
            json!({ "title": 5 }),
            json!({ "message": "x".repeat(MAX_MESSAGE + 1) }),
            json!({ "assignees": [5] }),
            json!({ "timeoutMs": "soon" }),
        ] {
            assert!(Request::read(&wrong, "").is_err(), "{wrong}");
        }
        Ok(())
    }
}
