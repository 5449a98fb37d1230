//! The catalog: native node kinds, apps and their modules, as callers and their tools read them.

use contract::scope::WorkflowRead;
use contract::v1;
use engine::graph::NATIVE_APP;
use engine::kind::{Kinds as _, NodeSpec};
use engine::params::{FieldSpec, FieldType};

use super::{Services, graph, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};

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
        _caller: Authorized<WorkflowRead>,
        _request: v1::SearchAppsRequest,
    ) -> Result<v1::SearchAppsResponse> {
        // The registry has the native app alone, which is no app that one connects to.
        Ok(v1::SearchAppsResponse { data: Vec::new() })
    }

    async fn get_module(
        &self,
        _caller: Authorized<WorkflowRead>,
        _request: v1::GetModuleRequest,
    ) -> Result<v1::GetModuleResponse> {
        Err(Error::not_found("module"))
    }

    async fn get_node_kind(
        &self,
        _caller: Authorized<WorkflowRead>,
        request: v1::GetNodeKindRequest,
    ) -> Result<v1::GetNodeKindResponse> {
        let found = self.services.registry.find(NATIVE_APP, &request.kind);
        let registered = found.map_err(|_unknown| Error::not_found("node kind"))?;
        Ok(v1::GetNodeKindResponse {
            data: Some(shown(&registered.spec)?),
        })
    }
}

fn shown(spec: &NodeSpec) -> Result<v1::NodeSpec> {
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
