//! The catalog: apps, their modules and the native node kinds, as callers and their tools read them.
//!
//! The native kinds are found as one more app, `native`; what each takes is read at `/catalog/nodes/{kind}`.

use contract::scope::WorkflowRead;
use contract::v1;
use engine::graph::NATIVE_APP;
use engine::kind::{Kinds as _, NodeSpec};
use engine::params::{FieldSpec, FieldType};
use serde_json::{Map, Value, json};

use super::{Services, graph, page_size, service};
use crate::auth::Authorized;
use crate::connectors::{self, App, Connection, ConnectionNeed, Field, Module, Rpc, Searched};
use crate::error::{Error, Result};

const DEFAULT_APPS: i64 = 10;

pub(super) struct Catalog {
    services: Services,
}

contract::catalog_service_methods!(service, Catalog);

impl Catalog {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn search_apps(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::SearchAppsRequest,
    ) -> Result<v1::SearchAppsResponse> {
        let apps = self.services.apps(caller.organization_id()).await?;
        let apps: Vec<&App> = apps.iter().map(AsRef::as_ref).collect();
        let kinds = self.services.registry.native_specs();
        // The native kinds come last, so that an app of the same rank comes first.
        let mut among: Vec<Searched<'_>> = apps.iter().map(|app| searched_app(app)).collect();
        among.push(searched_kinds(&kinds));
        let most = usize::try_from(page_size(request.limit, DEFAULT_APPS)).unwrap_or(usize::MAX);
        let found = connectors::search(&request.query, &among);
        let shown = |place: usize| match apps.get(place) {
            Some(app) => shown_app(app),
            None => native_app(&request.query, &kinds),
        };
        Ok(v1::SearchAppsResponse {
            data: found.into_iter().take(most).map(shown).collect(),
        })
    }

    async fn get_module(
        &self,
        caller: Authorized<WorkflowRead>,
        request: v1::GetModuleRequest,
    ) -> Result<v1::GetModuleResponse> {
        let (app_id, module_id) = (&request.app_id, &request.module_id);
        if app_id == NATIVE_APP && self.services.registry.find(NATIVE_APP, module_id).is_ok() {
            let message = format!("names a native node kind; read it at /catalog/nodes/{module_id}");
            return Err(Error::invalid("moduleId", message));
        }
        let apps = self.services.apps(caller.organization_id()).await?;
        let app = apps.find(app_id);
        let found = app.and_then(|app| Some((app, app.module(module_id)?)));
        let (app, module) = found.ok_or_else(|| Error::not_found("module"))?;
        Ok(v1::GetModuleResponse {
            data: Some(module_spec(app, module)?),
        })
    }

    async fn get_node_kind(
        &self,
        _caller: Authorized<WorkflowRead>,
        request: v1::GetNodeKindRequest,
    ) -> Result<v1::GetNodeKindResponse> {
        let found = self.services.registry.find(NATIVE_APP, &request.kind);
        let registered = found.map_err(|_unknown| Error::not_found("node kind"))?;
        Ok(v1::GetNodeKindResponse {
            data: Some(node_spec(&registered.spec)?),
        })
    }
}

fn searched_app(app: &App) -> Searched<'_> {
    let modules = &app.modules;
    Searched {
        names: vec![&app.id, &app.name],
        purposes: app.categories.iter().map(String::as_str).collect(),
        texts: app.description.iter().map(String::as_str).collect(),
        part_names: modules
            .iter()
            .flat_map(|module| [module.id.as_str(), module.label.as_str()])
            .collect(),
        part_texts: modules.iter().map(|module| module.description.as_str()).collect(),
    }
}

fn searched_kind(spec: &NodeSpec) -> Searched<'_> {
    Searched {
        names: vec![&spec.kind, &spec.label],
        purposes: Vec::new(),
        texts: vec![&spec.description],
        part_names: Vec::new(),
        part_texts: Vec::new(),
    }
}

fn searched_kinds(specs: &[NodeSpec]) -> Searched<'_> {
    Searched {
        names: vec![NATIVE_APP],
        purposes: Vec::new(),
        texts: vec![NATIVE_DESCRIPTION],
        part_names: specs
            .iter()
            .flat_map(|spec| [spec.kind.as_str(), spec.label.as_str()])
            .collect(),
        part_texts: specs.iter().map(|spec| spec.description.as_str()).collect(),
    }
}

const NATIVE_DESCRIPTION: &str = "Node kinds of the service itself: triggers, flow control and data.";

/// The native kinds as an app: those that the query finds, or all when only the app itself is found.
fn native_app(query: &str, specs: &[NodeSpec]) -> v1::CatalogApp {
    let among: Vec<Searched<'_>> = specs.iter().map(searched_kind).collect();
    let found = connectors::search(query, &among);
    let places = if found.is_empty() {
        (0..specs.len()).collect()
    } else {
        found
    };
    let module = |spec: &NodeSpec| v1::CatalogModule {
        id: spec.kind.clone(),
        label: spec.label.clone(),
        r#type: if spec.is_trigger() { "trigger" } else { "action" }.to_owned(),
    };
    v1::CatalogApp {
        app_id: NATIVE_APP.to_owned(),
        name: "Native".to_owned(),
        description: Some(NATIVE_DESCRIPTION.to_owned()),
        modules: places
            .into_iter()
            .filter_map(|place| specs.get(place))
            .map(module)
            .collect(),
        connections: Vec::new(),
        rpcs: Vec::new(),
    }
}

fn shown_app(app: &App) -> v1::CatalogApp {
    let module = |module: &Module| v1::CatalogModule {
        id: module.id.clone(),
        label: module.label.clone(),
        r#type: module.module_type.as_str().to_owned(),
    };
    v1::CatalogApp {
        app_id: app.id.clone(),
        name: app.name.clone(),
        description: app.description.clone(),
        modules: app.modules.iter().map(module).collect(),
        connections: app.connections.iter().map(connection).collect(),
        rpcs: app.rpcs.iter().map(rpc).collect(),
    }
}

fn connection(connection: &Connection) -> v1::CatalogConnection {
    v1::CatalogConnection {
        id: connection.id.clone(),
        label: connection.label.clone(),
        r#type: connection.connection_type.as_str().to_owned(),
        fields: connection.fields.iter().map(module_field).collect(),
    }
}

fn rpc(rpc: &Rpc) -> v1::CatalogRpc {
    v1::CatalogRpc {
        id: rpc.id.clone(),
        label: rpc.label.clone(),
        depends_on: rpc.depends_on.clone(),
    }
}

fn module_field(field: &Field) -> v1::ModuleField {
    v1::ModuleField {
        name: field.name.clone(),
        label: field.label.clone(),
        r#type: field.field_type.as_str().to_owned(),
        required: field.required,
    }
}

/// What the specification's shape of a field has no place for, under its name.
fn told_of(field: &Field) -> (String, Value) {
    let mut told = Map::new();
    if let Some(description) = &field.description {
        told.insert("description".to_owned(), json!(description));
    }
    if !field.choices.is_empty() {
        told.insert("choices".to_owned(), json!(field.choices));
    }
    if let Some(default) = &field.default {
        told.insert("default".to_owned(), default.clone());
    }
    if let Some(rpc) = &field.options {
        told.insert("options".to_owned(), json!(rpc));
    }
    (field.name.clone(), Value::Object(told))
}

fn module_spec(app: &App, module: &Module) -> Result<v1::ModuleSpec> {
    let connections: Vec<_> = app.connections.iter().map(connection).collect();
    let rpcs: Vec<_> = app.rpcs.iter().map(rpc).collect();
    let meta = json!({
        "appId": app.id,
        "appName": app.name,
        "moduleId": module.id,
        "label": module.label,
        "type": module.module_type.as_str(),
        "description": module.description,
        "connections": serde_json::to_value(connections).map_err(Error::internal)?,
        "example": module.example,
        "fields": module.fields.iter().map(told_of).collect::<Map<_, _>>(),
        "rpcs": serde_json::to_value(rpcs).map_err(Error::internal)?,
    });
    let fields = |mappable: bool| {
        let fields = module
            .fields
            .iter()
            .filter(move |field| field.mappable == mappable);
        fields.map(module_field).collect()
    };
    Ok(v1::ModuleSpec {
        meta: Some(graph::object(&meta)?),
        mappable_fields: fields(true),
        static_fields: fields(false),
        emits_multiple_bundles: module.emits_several(),
        requires_connection: module.connection == ConnectionNeed::Required,
    })
}

fn node_spec(spec: &NodeSpec) -> Result<v1::NodeSpec> {
    Ok(v1::NodeSpec {
        kind: spec.kind.clone(),
        label: spec.label.clone(),
        description: spec.description.clone(),
        persists_under: NodeSpec::PERSISTS_UNDER.to_owned(),
        expression_grammar: NodeSpec::EXPRESSION_GRAMMAR.to_owned(),
        edge_model: spec.edge_model.clone(),
        insertable: spec.insertable,
        shape: spec.shape.iter().map(field).collect(),
        example: Some(graph::object(&spec.example)?),
        routes: spec
            .routes
            .iter()
            .map(|route| route.as_str().to_owned())
            .collect(),
    })
}

fn field(spec: &FieldSpec) -> (String, v1::NodeField) {
    let description = match &spec.field_type {
        FieldType::Choice(words) => format!("{} One of {}.", spec.description, words.join(", ")),
        _ => spec.description.clone(),
    };
    let field = v1::NodeField {
        r#type: spec.field_type.as_str().to_owned(),
        required: spec.required,
        description,
    };
    (spec.name.clone(), field)
}
