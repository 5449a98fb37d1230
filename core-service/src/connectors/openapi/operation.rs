//! Operations: each becomes a module.

use serde_json::{Map, Value, json};

use super::body::Body;
use super::document::Part;
use super::field::Field;
use super::name::{self, Names};
use super::parameter::{LeftOut, Slots};
use super::security::{Need, Security};
use super::{ImportError, LONGEST_NAME, LONGEST_TEXT, MOST_OPERATIONS, Warnings};

const METHODS: [&str; 7] = ["get", "post", "put", "patch", "delete", "head", "options"];

/// The operations of a document.
pub(super) struct Operations {
    /// As manifests write them.
    pub(super) modules: Vec<Value>,
}

/// An operation and where it stands.
struct Operation<'p, 'd> {
    path: &'d str,
    method: &'static str,
    item: &'p Part<'d>,
    part: Part<'d>,
}

impl Operations {
    pub(super) fn of(
        root: &Part<'_>,
        security: &Security<'_>,
        warnings: &mut Warnings,
    ) -> Result<Self, ImportError> {
        let (mut ids, mut modules) = (Names::default(), Vec::new());
        let items = root.members("paths", warnings);
        let operations = items
            .iter()
            .flat_map(|(path, item)| operations(path, item, warnings));
        let operations: Vec<Operation<'_, '_>> = operations.collect();
        if operations.len() > MOST_OPERATIONS {
            let message = format!(
                "hold {} operations; at most {MOST_OPERATIONS} can be imported: leave out paths that are not needed",
                operations.len()
            );
            return Err(ImportError::new("document.paths", message));
        }
        for operation in &operations {
            let place = &operation.part.place;
            match operation.module(security, &mut ids, warnings) {
                Ok(module) => modules.push(module),
                Err(LeftOut(why)) => warnings.say(place, format!("is left out: {why}")),
            }
        }
        match modules.is_empty() {
            true => Err(ImportError::new(
                "document.paths",
                "hold no operation that can be imported",
            )),
            false => Ok(Self { modules }),
        }
    }
}

fn operations<'p, 'd>(path: &'d str, item: &'p Part<'d>, warnings: &mut Warnings) -> Vec<Operation<'p, 'd>> {
    if item.object().is_some_and(|item| item.contains_key("trace")) {
        warnings.say(&item.place, "trace is left out: it is no method that nodes use");
    }
    let operation = |method: &'static str| {
        let part = item.member(method, warnings)?;
        Some(Operation {
            path,
            method,
            item,
            part,
        })
    };
    METHODS.into_iter().filter_map(operation).collect()
}

impl Operation<'_, '_> {
    fn module(
        &self,
        security: &Security<'_>,
        ids: &mut Names,
        warnings: &mut Warnings,
    ) -> Result<Value, LeftOut> {
        if self
            .part
            .value
            .get("servers")
            .or(self.item.value.get("servers"))
            .is_some()
        {
            return Err(LeftOut("it has servers of its own".to_owned()));
        }
        let mut names = Names::default();
        let (mut slots, mut fields) = (Slots::default(), Vec::new());
        for parameter in self.parameters(warnings) {
            let is_brought = |place: &str, name: &str| security.brings(place, name);
            fields.extend(slots.add(&parameter, is_brought, &mut names, warnings)?);
        }
        let path = self.path(&mut slots.path, &mut fields, &mut names)?;
        let body = Body::of(&self.part, &mut names, warnings)?;
        let (request, of_body) = self.request(path, slots, body);
        fields.extend(of_body);
        for callback in self.part.members("callbacks", warnings) {
            warnings.say(&callback.1.place, "is left out; triggers are written by hand");
        }
        let mut module = Map::new();
        module.insert("id".to_owned(), json!(ids.unique(self.id())));
        module.insert("label".to_owned(), json!(self.label()));
        module.insert("type".to_owned(), json!("action"));
        module.insert("description".to_owned(), json!(self.description()));
        match security.need(&self.part) {
            Need::Required => {}
            Need::Optional => {
                module.insert("connection".to_owned(), json!("optional"));
            }
            Need::Unknown => {
                module.insert("connection".to_owned(), json!("optional"));
                let message = "its security is left out: no way to connect brings what it asks for";
                warnings.say(&self.part.place, message);
            }
        }
        let example = fields.iter().filter(|field| field.is_required);
        let example: Map<String, Value> = example
            .map(|field| (field.name.clone(), field.example.clone()))
            .collect();
        if !fields.is_empty() {
            let fields: Vec<Value> = fields.into_iter().map(|field| field.written).collect();
            module.insert("fields".to_owned(), Value::Array(fields));
            module.insert("example".to_owned(), Value::Object(example));
        }
        module.insert("request".to_owned(), request);
        module.insert("output".to_owned(), json!("{{response.body}}"));
        Ok(Value::Object(module))
    }

    /// Its own parameters and those of its path, of which its own take the place.
    fn parameters(&self, warnings: &mut Warnings) -> Vec<Part<'_>> {
        let own = self.part.elements("parameters", warnings);
        let which = |part: &Part<'_>| {
            (
                part.text("name").map(str::to_owned),
                part.text("in").map(str::to_owned),
            )
        };
        let known: Vec<_> = own.iter().map(which).collect();
        let mut all = self.item.elements("parameters", warnings);
        all.retain(|general| !known.contains(&which(general)));
        all.extend(own);
        all
    }

    /// The path with templates in its places.
    fn path(
        &self,
        given: &mut Map<String, Value>,
        fields: &mut Vec<Field>,
        names: &mut Names,
    ) -> Result<String, LeftOut> {
        let refused = |why: &str| LeftOut(format!("the path {} {why}", self.path));
        if !self.path.starts_with('/') || self.path.contains("{{") || self.path.contains(['?', '#']) {
            return Err(refused("must begin with / and have neither ?, # nor {{"));
        }
        let (mut path, mut rest) = (String::new(), self.path);
        while let Some((before, after)) = rest.split_once('{') {
            let (called, after) = after
                .split_once('}')
                .ok_or_else(|| refused("has a { without its }"))?;
            path.push_str(before);
            if !given.contains_key(called) {
                let field = Field::of_path(names.unique(name::variable(called)), called);
                given.insert(
                    called.to_owned(),
                    json!(format!("{{{{parameters.{}}}}}", field.name)),
                );
                fields.push(field);
            }
            path.push_str(given.get(called).and_then(Value::as_str).unwrap_or_default());
            rest = after;
        }
        path.push_str(rest);
        Ok(path)
    }

    /// The request as manifests write it, and the fields of its body.
    fn request(&self, path: String, slots: Slots, body: Option<Body>) -> (Value, Vec<Field>) {
        let mut request = Map::new();
        if self.method != "get" {
            request.insert("method".to_owned(), json!(self.method.to_ascii_uppercase()));
        }
        request.insert("path".to_owned(), json!(path));
        if !slots.query.is_empty() {
            request.insert("query".to_owned(), Value::Object(slots.query));
        }
        let mut headers = slots.headers;
        let mut fields = Vec::new();
        if let Some(body) = body {
            if body.body_type != "json" {
                request.insert("bodyType".to_owned(), json!(body.body_type));
            }
            request.insert("body".to_owned(), body.template);
            if let Some(content_type) = body.content_type {
                headers.insert("content-type".to_owned(), json!(name::literal(&content_type)));
            }
            fields = body.fields;
        }
        if !headers.is_empty() {
            request.insert("headers".to_owned(), Value::Object(headers));
        }
        (Value::Object(request), fields)
    }

    fn id(&self) -> String {
        let own = self.part.text("operationId").map(name::id);
        let id = own.filter(|id| !id.is_empty());
        id.unwrap_or_else(|| name::id(&format!("{} {}", self.method, self.path)))
    }

    fn label(&self) -> String {
        match (self.part.text("summary"), self.part.text("operationId")) {
            (Some(summary), _) => name::short(summary, LONGEST_NAME),
            (None, Some(id)) => name::label(id),
            (None, None) => format!(
                "{} {}",
                self.method.to_ascii_uppercase(),
                name::short(self.path, LONGEST_NAME)
            ),
        }
    }

    fn description(&self) -> String {
        let text = self.part.text("description").or(self.part.text("summary"));
        let text = text.map_or_else(
            || format!("{} {}", self.method.to_ascii_uppercase(), self.path),
            str::to_owned,
        );
        let text = match self.part.flag("deprecated") {
            true => format!("Deprecated. {text}"),
            false => text,
        };
        name::short(&text, LONGEST_TEXT)
    }
}
