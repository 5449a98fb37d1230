//! Every endpoint of the specification, against the routes, the access rules and the OpenAPI document.

#![allow(clippy::unwrap_used, reason = "tests")]

use contract::access::{Access, Method};
use contract::json::Words;
use contract::v1::Scope;
use serde_json::Value;

use crate::schema::{Comparison, is_required};

/// Endpoints that are for owners and admins though their line does not say so; section 5.6 of the specification does.
const ADMIN_ONLY_BY_SECTION_5: &[&str] = &["POST /invitations"];

/// Fields that are marked required and are only so in some cases, as the specification's own words beside them say.
const REQUIRED_SOMETIMES: &[&str] = &["PUT /variables/{id} body.value"];

#[test]
fn the_contract_is_what_the_specification_says() {
    let specification: Value = serde_json::from_str(include_str!("endpoints.json")).unwrap();
    let openapi = rest_facade::openapi::document().unwrap();
    let mut comparison = Comparison {
        specification: &specification,
        openapi: &openapi,
        mismatches: Vec::new(),
    };
    let endpoints = specification["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 62, "the specification's own count");
    for endpoint in endpoints {
        comparison.endpoint(endpoint);
    }
    let mismatches = comparison.mismatches;
    assert!(
        mismatches.is_empty(),
        "{} mismatches:\n{}",
        mismatches.len(),
        mismatches.join("\n")
    );
}

/// A path with its parameters named by position.
fn normal(path: &str) -> String {
    let segments = path
        .split('/')
        .map(|segment| if segment.starts_with('{') { "{}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

impl<'a> Comparison<'a> {
    fn endpoint(&mut self, endpoint: &'a Value) {
        let (verb, path) = (
            endpoint["method"].as_str().unwrap(),
            endpoint["path"].as_str().unwrap(),
        );
        let place = format!("{verb} {path}");
        let wanted = normal(&format!("/api/v1{path}"));
        let routes = crate::routes();
        let Some(route) = routes
            .iter()
            .find(|route| route.verb == verb && normal(route.path) == wanted)
        else {
            return self.mismatch(&place, "has no route");
        };
        let success = &endpoint["success"];
        if success["status"] != route.success_status {
            self.mismatch(
                &place,
                &format!(
                    "answers {} and should answer {}",
                    route.success_status, success["status"]
                ),
            );
        }
        self.access(&place, endpoint, Method::find(route.rpc).unwrap());
        let openapi: &'a Value = self.openapi;
        let operation = &openapi["paths"][route.path][verb.to_lowercase()];
        if operation.is_null() {
            return self.mismatch(&place, "is not in the OpenAPI document");
        }
        self.parameters(&place, endpoint, operation);
        self.body(&place, endpoint, operation);
        self.success(&place, success, operation);
        self.errors(&place, endpoint, operation);
    }

    fn access(&mut self, place: &str, endpoint: &Value, method: &Method) {
        let scope = match method.access {
            Access::Key(scope) => Scope::to_word(scope as i32).unwrap_or_default(),
            Access::Public | Access::Operator => "none",
        };
        if endpoint["scope"] != scope {
            self.mismatch(
                place,
                &format!("needs scope {scope} and should need {}", endpoint["scope"]),
            );
        }
        let admin_only = endpoint["adminOnly"] == true || ADMIN_ONLY_BY_SECTION_5.contains(&place);
        if method.admin_only != admin_only {
            self.mismatch(place, &format!("admin only should be {admin_only}"));
        }
    }

    fn parameters(&mut self, place: &str, endpoint: &'a Value, operation: &'a Value) {
        let parameters = operation["parameters"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        for (kind, wanted) in [("query", &endpoint["query"]), ("header", &endpoint["headers"])] {
            for wanted in wanted.as_array().into_iter().flatten() {
                let name = wanted["name"].as_str().unwrap();
                let place = format!("{place} {kind}.{name}");
                let found = parameters
                    .iter()
                    .find(|found| found["in"] == kind && found["name"] == name);
                let Some(found) = found else {
                    self.mismatch(&place, "is missing");
                    continue;
                };
                self.is_type(&place, wanted["type"].as_str().unwrap(), &found["schema"]);
                if found["required"] != wanted["required"] {
                    self.mismatch(&place, &format!("required should be {}", wanted["required"]));
                }
                if !wanted["default"].is_null() && found["schema"]["default"] != wanted["default"] {
                    self.mismatch(&place, &format!("the default should be {}", wanted["default"]));
                }
            }
        }
    }

    fn body(&mut self, place: &str, endpoint: &'a Value, operation: &'a Value) {
        let schema = self.resolve(&operation["requestBody"]["content"]["application/json"]["schema"]);
        let wanted = endpoint["body"].as_array().unwrap();
        for field in wanted {
            let name = field["name"].as_str().unwrap();
            let place = format!("{place} body.{name}");
            let Some(property) = schema["properties"].get(name) else {
                self.mismatch(&place, "is missing");
                continue;
            };
            self.is_type(&place, field["type"].as_str().unwrap(), property);
            let required = is_required(schema, name) || REQUIRED_SOMETIMES.contains(&place.as_str());
            if required != (field["required"] == true) {
                self.mismatch(&place, &format!("required should be {}", field["required"]));
            }
            if field["nullable"] == true && !self.takes_null(property) {
                self.mismatch(&place, "should take null");
            }
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            if !wanted.iter().any(|field| field["name"] == *name) {
                self.mismatch(
                    &format!("{place} body.{name}"),
                    "is required and not in the specification",
                );
            }
        }
    }

    fn success(&mut self, place: &str, success: &'a Value, operation: &'a Value) {
        let also = success["alsoStatus"].as_array().into_iter().flatten();
        for status in std::iter::once(&success["status"]).chain(also) {
            let answer = &operation["responses"][status.to_string()];
            let place = format!("{place} {status}");
            if answer.is_null() {
                self.mismatch(&place, "is no documented answer");
                continue;
            }
            let content = &answer["content"]["application/json"]["schema"];
            if success["envelope"] == "none" {
                if !content.is_null() {
                    self.mismatch(&place, "should have no body");
                }
                continue;
            }
            self.envelope(&place, success, self.resolve(content));
        }
    }

    fn envelope(&mut self, place: &str, success: &Value, schema: &'a Value) {
        let kind = success["envelope"].as_str().unwrap();
        let beside: &[(&str, &str)] = match kind {
            "page" => &[("next_cursor", "string")],
            "bounded" => &[("truncated", "boolean")],
            "rows" => &[("count", "integer"), ("next_cursor", "string")],
            _ => &[],
        };
        for (name, wanted) in beside {
            let place = format!("{place} {name}");
            self.is_type(&place, wanted, &schema["properties"][*name]);
            if !is_required(schema, name) {
                self.mismatch(&place, "should always be there");
            }
            if self.takes_null(&schema["properties"][*name]) != (*name == "next_cursor") {
                self.mismatch(&place, "null is not for this one, or is");
            }
        }
        let item = success["schema"].as_str().unwrap();
        let wanted = match kind {
            "object" => item.to_owned(),
            _ => format!("array<{item}>"),
        };
        if !is_required(schema, "data") {
            self.mismatch(place, "data should always be there");
        }
        self.is_type(&format!("{place} data"), &wanted, &schema["properties"]["data"]);
    }

    fn errors(&mut self, place: &str, endpoint: &'a Value, operation: &'a Value) {
        let named = endpoint["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string);
        for status in named.chain(["401", "403", "421", "429"].map(str::to_owned)) {
            let answer = &operation["responses"][&status];
            if answer.is_null() {
                self.mismatch(place, &format!("does not document {status}"));
                continue;
            }
            let examples = &self.resolve(answer)["content"]["application/json"]["examples"];
            if let Some(code) = endpoint["errorCodes"][&status].as_str()
                && examples[code].is_null()
            {
                self.mismatch(place, &format!("{status} should have the code {code}"));
            }
        }
    }
}
