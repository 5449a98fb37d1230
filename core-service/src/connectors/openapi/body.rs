//! Bodies of requests: the fields they are made of, and the template that makes them.

use serde_json::{Map, Value, json};

use super::Warnings;
use super::document::Part;
use super::field::{Field, Source};
use super::name::{self, Names};
use super::parameter::LeftOut;
use super::schema::Schema;

/// The most properties that become fields of their own.
const MOST_PROPERTIES: usize = 100;

/// A body as manifests write it.
pub(super) struct Body {
    pub(super) fields: Vec<Field>,
    /// What the request gains: `body`, `bodyType`, `headers`.
    pub(super) template: Value,
    pub(super) body_type: &'static str,
    /// The content type, when the way of writing it does not say.
    pub(super) content_type: Option<String>,
}

impl Body {
    /// The body of an operation, when it has one that can be written.
    pub(super) fn of(
        operation: &Part<'_>,
        names: &mut Names,
        warnings: &mut Warnings,
    ) -> Result<Option<Self>, LeftOut> {
        let Some(request) = operation.member("requestBody", warnings) else {
            return Ok(None);
        };
        let contents = request.members("content", warnings);
        let best = contents.iter().min_by_key(|(media_type, _)| rank(media_type));
        let Some((media_type, content)) = best else {
            return match request.flag("required") {
                true => Err(LeftOut("its body is required, and has no content".to_owned())),
                false => Ok(None),
            };
        };
        for (other, part) in contents.iter().filter(|(other, _)| other != media_type) {
            let message = format!("is left out: bodies are written as {media_type}, not as {other}");
            warnings.say(&part.place, message);
        }
        let (body_type, content_type) = written_as(media_type);
        let schema = content.member("schema", warnings);
        let schema = schema.map_or_else(Schema::default, |schema| Schema::of(&schema, warnings));
        let is_split =
            body_type != "raw" && schema.is_plain_object() && schema.properties.len() <= MOST_PROPERTIES;
        let (fields, template) = match is_split {
            true => properties(&schema, content, body_type, names, warnings),
            false => whole(&schema, &request, body_type, names, warnings),
        };
        Ok(Some(Self {
            fields,
            template,
            body_type,
            content_type,
        }))
    }
}

/// A field for each property.
fn properties(
    schema: &Schema<'_>,
    content: &Part<'_>,
    body_type: &str,
    names: &mut Names,
    warnings: &mut Warnings,
) -> (Vec<Field>, Value) {
    let (mut fields, mut template) = (Vec::new(), Map::new());
    for (called, part) in &schema.properties {
        let property = Schema::of(part, warnings);
        if property.read_only {
            continue;
        }
        let name = names.unique(name::variable(called));
        let value = match body_type != "json" && property.only_type() == Some("object") {
            // A form has texts only, and an object in multipart would be a file.
            true => format!("{{{{parameters.{name} == null ? null : toJSON(parameters.{name})}}}}"),
            false => format!("{{{{parameters.{name}}}}}"),
        };
        template.insert((*called).to_owned(), json!(value));
        let source = Source {
            name,
            called,
            place: &part.place,
            schema: &property,
            description: None,
            is_required: schema.required.contains(called),
            is_in_body: true,
        };
        fields.push(Field::of(source, warnings));
    }
    if schema.is_open {
        warnings.say(
            &content.place,
            "properties without a name are left out; write the body by hand",
        );
    }
    (fields, Value::Object(template))
}

/// One field for all of it.
fn whole(
    schema: &Schema<'_>,
    request: &Part<'_>,
    body_type: &str,
    names: &mut Names,
    warnings: &mut Warnings,
) -> (Vec<Field>, Value) {
    let name = names.unique("body".to_owned());
    let template = json!(format!("{{{{parameters.{name}}}}}"));
    // Whatever a raw body is for the service, here it is a text or bytes.
    let (bytes, described) = (Schema::default(), "A text, or {\"base64\": …} for bytes.");
    let is_raw = body_type == "raw";
    let source = Source {
        name,
        called: "body",
        place: &request.place,
        schema: if is_raw { &bytes } else { schema },
        description: request.text("description").or(is_raw.then_some(described)),
        is_required: request.flag("required"),
        is_in_body: true,
    };
    (vec![Field::of(source, warnings)], template)
}

/// Which of several ways to write a body is taken: the lowest.
fn rank(media_type: &str) -> u8 {
    let essence = essence(media_type);
    match essence.as_str() {
        "application/json" => 0,
        "application/x-www-form-urlencoded" => 2,
        "multipart/form-data" => 3,
        "*/*" | "application/*" => 4,
        json if json.ends_with("+json") => 1,
        text if text.starts_with("text/") => 5,
        _ => 6,
    }
}

/// How it is written, and the content type when that does not say it.
fn written_as(media_type: &str) -> (&'static str, Option<String>) {
    let essence = essence(media_type);
    match essence.as_str() {
        "application/json" | "*/*" | "application/*" => ("json", None),
        "application/x-www-form-urlencoded" => ("form", None),
        "multipart/form-data" => ("multipart", None),
        json if json.ends_with("+json") => ("json", Some(essence)),
        other if other.contains('*') => ("raw", None),
        _ => ("raw", Some(essence)),
    }
}

fn essence(media_type: &str) -> String {
    let essence = media_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}
