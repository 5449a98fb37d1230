//! Modules of apps: their manifests as kinds, and who executes them.

use engine::config::Retry;
use engine::expression::CustomFunctions;
use engine::failure::NodeError;
use engine::graph::Node;
use engine::kind::{Behaviour, Kind, NodeSpec};
use engine::params::{Completeness, FieldSpec, FieldType, ParamProblem};
use serde_json::{Map, Value};
use std::sync::Arc;

use super::app_caller::AppCaller;
use super::http::Caller;
use super::{BoxFuture, Executed, Execution, Executor, parameters};
use crate::connectors::{self, App, Field, Module, ModuleType};

/// A module as a kind.
pub struct AppModule {
    app: Arc<App>,
    /// Which of the app's modules it is.
    place: usize,
}

impl AppModule {
    /// The modules of an app.
    pub fn all(app: &Arc<App>) -> impl Iterator<Item = Self> {
        (0..app.modules.len()).map(|place| Self {
            app: Arc::clone(app),
            place,
        })
    }

    /// The module's id within its app.
    pub fn id(&self) -> &str {
        &self.module().id
    }

    fn module(&self) -> &Module {
        &self.app.modules[self.place]
    }
}

impl Kind for AppModule {
    fn spec(&self) -> NodeSpec {
        let module = self.module();
        let make = match module.module_type {
            ModuleType::Trigger => NodeSpec::trigger,
            ModuleType::Action | ModuleType::Search => NodeSpec::step,
        };
        let spec = NodeSpec {
            app_id: self.app.id.clone(),
            opens_scope: module.emits_several(),
            retry: self.app.retry.map(retry),
            ..make(&module.id, &module.label, &module.description)
        };
        spec.with_shape(module.fields.iter().map(field_spec))
            .with_example(Value::Object(module.example.clone()))
    }

    fn check(&self, params: &Map<String, Value>, _completeness: Completeness) -> Vec<ParamProblem> {
        let module = self.module();
        let given = params.iter().filter(|(_, value)| !value.is_null());
        let problem = |(name, value): (&String, &Value)| {
            let has_templates = value.to_string().contains("{{");
            let is_mappable = module
                .fields
                .iter()
                .any(|field| field.name == *name && field.mappable);
            let message = match has_templates {
                true if is_mappable => return None,
                true => "must be a plain value: it takes no templates".to_owned(),
                false => module.check(name, value).err()?.message,
            };
            Some(ParamProblem::new(name, message))
        };
        given.filter_map(problem).collect()
    }

    fn compile(&self, node: &Node, functions: &dyn CustomFunctions) -> Result<Behaviour, Vec<ParamProblem>> {
        match self.module().module_type {
            ModuleType::Trigger => Ok(Behaviour::Trigger),
            ModuleType::Action | ModuleType::Search => parameters::compile(node, functions),
        }
    }
}

fn retry(retry: connectors::Retry) -> Retry {
    Retry {
        max_attempts: retry.max_attempts,
        delay_ms: retry.delay_ms,
        ..Retry::default()
    }
}

fn field_spec(field: &Field) -> FieldSpec {
    let field_type = match field.field_type {
        connectors::FieldType::Text | connectors::FieldType::Url => FieldType::String,
        connectors::FieldType::Choice => FieldType::Choice(field.choices.clone()),
        connectors::FieldType::Integer => FieldType::Integer,
        connectors::FieldType::Number => FieldType::Number,
        connectors::FieldType::Boolean => FieldType::Boolean,
        connectors::FieldType::Object => FieldType::Object,
        connectors::FieldType::Array => FieldType::Array,
        connectors::FieldType::Any => FieldType::Any,
    };
    let description = field.description.as_ref().unwrap_or(&field.label);
    match field.required {
        true => FieldSpec::required(&field.name, field_type, description),
        false => FieldSpec::optional(&field.name, field_type, description),
    }
}

/// Executes the modules of all apps.
pub struct AppModules(pub AppCaller);

impl AppModules {
    async fn run(&self, execution: Execution) -> Result<Value, NodeError> {
        let found = execution.apps.find(&execution.app_id);
        let found = found.and_then(|app| Some((&**app, app.module(&execution.module_slug)?)));
        let found = found.ok_or_else(|| {
            let message = format!("there is no {}/{}", execution.app_id, execution.module_slug);
            NodeError::new("ENGINE_ERROR", message)
        })?;
        let named = execution.credential_id.as_deref();
        let (organization_id, apps) = (&execution.organization_id, &execution.apps);
        let credential = self.0.credential(found, organization_id, named, apps).await?;
        let empty = Map::new();
        let parameters = execution.request.as_object().unwrap_or(&empty);
        let caller = Caller::of_node(&execution, Some(found.0), credential.as_ref());
        self.0.call(found, parameters, caller).await
    }
}

impl Executor for AppModules {
    fn execute(&self, execution: Execution) -> BoxFuture<'_, Result<Executed, NodeError>> {
        Box::pin(async move { self.run(execution).await.map(Executed::Output) })
    }
}
