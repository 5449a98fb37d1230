//! A module: what it takes, and what it gives.

use std::collections::BTreeSet;

use serde_json::Value;

use super::counted;
use super::markdown::{Table, code, codes, json, text};
use crate::connectors::failure::FailureRule;
use crate::connectors::field::{Field, FieldType};
use crate::connectors::manifest::App;
use crate::connectors::module::{ConnectionNeed, Module, ModuleType};
use crate::connectors::options::Rpc;
use crate::connectors::template::Template;
use crate::connectors::trial::{Becomes, Trial, TrialDelivery};
use crate::connectors::trigger::Webhook;

impl App {
    /// What the page says of a module.
    pub(super) fn described(&self, module: &Module) -> Vec<String> {
        let mut blocks = vec![
            format!("### {}", text(&module.label)),
            format!("Module {}. {}", code(&module.id), text(&module.description)),
        ];
        if module.connection == ConnectionNeed::Optional {
            blocks.push("It works without a credential, too.".to_owned());
        }
        if !module.fields.is_empty() {
            blocks.push(parameters(module, &self.rpcs));
        }
        if !module.example.is_empty() {
            blocks.push("Parameters, for example:".to_owned());
            blocks.push(json(&Value::Object(module.example.clone())));
        }
        blocks.push(given(module));
        if let Some(sample) = self.tests.iter().find_map(|trial| sample(module, trial)) {
            blocks.push("For example:".to_owned());
            blocks.push(json(sample));
        }
        if !module.errors.is_empty() {
            blocks.push(failures(
                module.errors.iter(),
                "Besides those of the app, failures have the codes",
            ));
        }
        blocks
    }
}

fn parameters(module: &Module, rpcs: &[Rpc]) -> String {
    let mut table = Table::new(&["Parameter", "Type", "Required", "Templates", "Meaning"]);
    for field in &module.fields {
        table.row([
            code(&field.name),
            typed(field),
            yes(field.required && field.default.is_none()),
            yes(field.mappable),
            meaning(field, rpcs),
        ]);
    }
    table.to_string()
}

/// What comes of it, in words.
fn given(module: &Module) -> String {
    let is_action = module.module_type == ModuleType::Action;
    if let Some(operation) = module.operation.as_ref().filter(|_| is_action) {
        return format!("Gives what the operation {} gives.", code(operation));
    }
    let mut said = match module.module_type {
        ModuleType::Search => "Gives a list; what follows runs once for each item.".to_owned(),
        ModuleType::Trigger => match &module.webhook {
            Some(webhook) => listens(webhook),
            None => asks(module),
        },
        ModuleType::Action => match module.output.as_ref().map(Template::written) {
            None => "Gives the body of the service's answer.".to_owned(),
            Some(Value::Object(members)) if !members.is_empty() => {
                format!("Gives {}.", codes(members.keys().map(String::as_str)))
            }
            Some(_) => "Gives what it reads from the service's answer.".to_owned(),
        },
    };
    if module.pagination.is_some() {
        let pages = counted(u64::from(module.most_pages()), "page");
        said.push_str(&format!(" It reads at most {pages}."));
    }
    said
}

/// When a trigger asks, and what it starts.
fn asks(module: &Module) -> String {
    let seconds = module.poll.as_ref().and_then(|poll| poll.fixed_interval());
    let when = match seconds.and_then(|seconds| u64::try_from(seconds).ok()) {
        Some(1) => "every second".to_owned(),
        Some(seconds) => format!("every {seconds} seconds"),
        None => "as often as its parameters say".to_owned(),
    };
    format!("Asks the service {when}. Each new item starts a run, whose input it is.")
}

/// Who tells the service where to call, and what its calls start.
fn listens(webhook: &Webhook) -> String {
    let told = match webhook.is_attached() {
        true => "The service is told the trigger's URL when the workflow goes live.",
        false => {
            "A person enters the trigger's URL at the service; `POST /workflows/{id}/webhook` gives it once the workflow \
             is deployed."
        }
    };
    format!("{told} What it delivers there starts a run.")
}

/// What a test of the manifest shows that the module gives: the output, or the first item.
fn sample<'a>(module: &Module, trial: &'a Trial) -> Option<&'a Value> {
    if trial.module.as_ref() != Some(&module.id) || trial.error.is_some() {
        return None;
    }
    let is_run = |delivery: &TrialDelivery| delivery.becomes == Becomes::Run;
    if module.webhook.is_some() && !trial.delivery.as_ref().is_some_and(is_run) {
        return None;
    }
    let item = trial.items.as_ref().and_then(|items| items.first());
    trial.output.as_ref().or(item)
}

/// The codes of failures that rules tell.
pub(super) fn failures<'a>(rules: impl Iterator<Item = &'a FailureRule>, intro: &str) -> String {
    let named: BTreeSet<&str> = rules.filter_map(FailureRule::code).collect();
    match named.is_empty() {
        true => format!("{intro} {}.", code("HTTP_ERROR")),
        false => format!("{intro} {}, and otherwise {}.", codes(named), code("HTTP_ERROR")),
    }
}

/// What a field takes.
pub(super) fn typed(field: &Field) -> String {
    let is_choice = field.field_type == FieldType::Choice;
    match is_choice && !field.choices.is_empty() {
        true => codes(field.choices.iter().map(String::as_str)),
        false if field.multiline => format!("{}, of several lines", field.field_type.as_str()),
        false => field.field_type.as_str().to_owned(),
    }
}

pub(super) fn yes(is_so: bool) -> String {
    let word = if is_so { "yes" } else { "" };
    word.to_owned()
}

/// A field in words: its label, its help, what it must match, what stands for it, and where its choices come from.
pub(super) fn meaning(field: &Field, rpcs: &[Rpc]) -> String {
    let mut said = vec![format!("**{}.**", text(&field.label))];
    said.extend(field.description.as_deref().map(text));
    if let Some(pattern) = &field.pattern {
        let pattern = pattern.as_str();
        let own = pattern
            .strip_prefix("^(?:")
            .and_then(|rest| rest.strip_suffix(")$"));
        said.push(format!("Must match {}.", code(own.unwrap_or(pattern))));
    }
    if let Some(default) = &field.default {
        said.push(format!("By default {}.", code(&default.to_string())));
    }
    let asked = field
        .options
        .as_ref()
        .and_then(|id| rpcs.iter().find(|rpc| rpc.id == *id));
    said.extend(asked.map(choices));
    said.join(" ")
}

/// Where choices come from.
fn choices(rpc: &Rpc) -> String {
    let source = format!("The service is asked for choices ({}", code(&rpc.id));
    match rpc.depends_on.is_empty() {
        true => format!("{source})."),
        false => format!(
            "{source}, after {}).",
            codes(rpc.depends_on.iter().map(String::as_str))
        ),
    }
}
