//! What of its organization a scenario's run reaches, made over the API.

use std::collections::BTreeMap;

use scenarios::Scenario;
use serde_json::{Value, json};
use test_support::{Api, text};

/// Makes all of it; gives what names in parameters stand for.
pub(super) async fn make(api: &Api, scenario: &Scenario) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for (name, table) in &scenario.tables {
        let body = json!({ "name": name, "columns": table.columns });
        let id = text(&api.post("/databases", body).await.data(201)["id"]);
        names.insert(format!("$tables.{name}"), id);
    }
    for (name, structure) in &scenario.structures {
        let body = json!({ "name": name, "fields": structure.fields });
        let id = text(&api.post("/structures", body).await.data(201)["id"]);
        names.insert(format!("$structures.{name}"), id);
    }
    for (name, function) in &scenario.functions {
        let parameter = |name: &String| json!({ "name": name, "type": "any", "required": true });
        let parameters: Vec<Value> = function.parameters.iter().map(parameter).collect();
        let body = json!({ "name": name, "code": function.code, "parameters": parameters });
        let id = text(&api.post("/functions", body).await.data(201)["id"]);
        names.insert(format!("$functions.{name}"), id);
    }
    // They may name one another.
    for name in scenario.workflows.keys() {
        let id = api.workflow(name).await;
        names.insert(format!("$workflows.{name}"), id);
    }
    for (name, drawing) in &scenario.workflows {
        let id = &names[&format!("$workflows.{name}")];
        api.edit(id, drawing.operations(&names, "")).await;
        api.go_live(id).await;
    }
    names
}
