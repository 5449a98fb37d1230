//! The live `openapi.json`: what it says that requests hold, and answers held against it.

use serde_json::{Value, json};
use test_support::Api;

use super::endpoint::Endpoint;

/// The document as the server serves it.
pub(super) struct Document {
    document: Value,
    /// The schemas of answers, which allow nothing that they do not name.
    closed: Value,
}

impl Document {
    pub async fn read(api: &Api) -> Self {
        let document = api.with_key(None).get("/openapi.json").await.body(200);
        let mut closed = document["components"].clone();
        for schema in closed["schemas"].as_object_mut().unwrap().values_mut() {
            if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
                schema["additionalProperties"] = json!(false);
            }
        }
        Self { document, closed }
    }

    fn operation(&self, endpoint: &Endpoint) -> &Value {
        &self.document["paths"][endpoint.route.path][endpoint.route.verb.to_lowercase()]
    }

    /// The schema of a body; none where nothing is to be sent.
    pub fn body(&self, endpoint: &Endpoint) -> Option<&Value> {
        let schema = &self.operation(endpoint)["requestBody"]["content"]["application/json"]["schema"];
        (!schema.is_null()).then(|| self.resolve(schema))
    }

    /// Whether a body must be sent.
    pub fn requires_body(&self, endpoint: &Endpoint) -> bool {
        self.operation(endpoint)["requestBody"]["required"] == true
    }

    /// The query parameters, each with name and schema.
    pub fn query(&self, endpoint: &Endpoint) -> Vec<&Value> {
        let parameters = self.operation(endpoint)["parameters"].as_array();
        let parameters = parameters.into_iter().flatten();
        parameters
            .filter(|parameter| parameter["in"] == "query")
            .collect()
    }

    /// The schema that a reference leads to.
    pub fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => schema,
        }
    }

    /// What is wrong with an answer of an endpoint by its document; nothing that is not there may be in it.
    pub fn wrong_in_answer(&self, endpoint: &Endpoint, status: u16, body: &Value) -> Vec<String> {
        let responses = &self.operation(endpoint)["responses"];
        let response = &responses[status.to_string()];
        let response = match response["$ref"].as_str() {
            Some(reference) => self.document.pointer(&reference[1..]).unwrap(),
            None => response,
        };
        match &response["content"]["application/json"]["schema"] {
            Value::Null => vec![format!("{status} with a JSON body is not documented")],
            schema => self.wrong(schema, body),
        }
    }

    /// What is wrong with a value by one of the document's schemas.
    pub fn wrong_in_schema(&self, name: &str, value: &Value) -> Vec<String> {
        self.wrong(&json!({ "$ref": format!("#/components/schemas/{name}") }), value)
    }

    fn wrong(&self, schema: &Value, value: &Value) -> Vec<String> {
        let mut whole = schema.clone();
        whole["components"] = self.closed.clone();
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&whole)
            .unwrap();
        let errors = validator.iter_errors(value);
        errors
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    /// All named schemas.
    pub fn schemas(&self) -> &Value {
        &self.document["components"]["schemas"]
    }
}
