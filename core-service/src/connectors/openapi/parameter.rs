//! Parameters of operations: which field each is, and where its value goes.

use http::HeaderName;
use serde_json::{Map, Value};

use super::Warnings;
use super::document::Part;
use super::field::{Field, Source};
use super::name::{self, Names};
use super::schema::Schema;

/// Headers that are no parameters, as the specification of OpenAPI says.
const NO_PARAMETERS: [&str; 3] = ["accept", "content-type", "authorization"];

/// Where the values of parameters go.
#[derive(Default)]
pub(super) struct Slots {
    /// Templates by the name that stands in the path.
    pub(super) path: Map<String, Value>,
    pub(super) query: Map<String, Value>,
    pub(super) headers: Map<String, Value>,
}

/// An operation that makes no module.
pub(super) struct LeftOut(pub(super) String);

impl Slots {
    /// Takes a parameter in, and gives its field. One that the connection brings has none, and neither has one that
    /// cannot be sent.
    pub(super) fn add(
        &mut self,
        parameter: &Part<'_>,
        is_brought: impl Fn(&str, &str) -> bool,
        names: &mut Names,
        warnings: &mut Warnings,
    ) -> Result<Option<Field>, LeftOut> {
        let (Some(called), Some(place)) = (parameter.text("name"), parameter.text("in")) else {
            warnings.say(&parameter.place, "is left out: it has no name or no place");
            return Ok(None);
        };
        let is_ignored = place == "header" && NO_PARAMETERS.contains(&called.to_ascii_lowercase().as_str());
        if is_ignored || is_brought(place, called) {
            return Ok(None);
        }
        let is_required = parameter.flag("required") || place == "path";
        let coded = parameter.members("content", warnings).into_iter().next();
        let schema = match &coded {
            Some((_, content)) => content.member("schema", warnings),
            None => parameter.member("schema", warnings),
        };
        let schema = schema.map_or_else(Schema::default, |schema| Schema::of(&schema, warnings));
        let is_object = schema.only_type() == Some("object") && coded.is_none();
        let why = match place {
            "header" if HeaderName::try_from(called).is_err() => Some("that is no name of a header"),
            "path" | "query" | "header" if !is_object => None,
            "path" | "query" | "header" => Some("an object cannot be sent there"),
            "cookie" => Some("cookies are not sent"),
            _ => Some("its place is not known"),
        };
        if let Some(why) = why {
            if is_required {
                return Err(LeftOut(format!("its parameter {called} is required, and {why}")));
            }
            warnings.say(
                &parameter.place,
                format!("the parameter {called} is left out: {why}"),
            );
            return Ok(None);
        }
        let name = names.unique(name::variable(called));
        let value = value(parameter, place, &name, schema.only_type(), coded.is_some());
        let slot = match place {
            "path" => &mut self.path,
            "query" => &mut self.query,
            _ => &mut self.headers,
        };
        slot.insert(called.to_owned(), Value::String(value));
        let source = Source {
            name,
            called,
            place: &parameter.place,
            schema: &schema,
            description: parameter.text("description"),
            is_required,
            is_in_body: false,
        };
        Ok(Some(Field::of(source, warnings)))
    }
}

/// The template of a parameter's value.
fn value(parameter: &Part<'_>, place: &str, name: &str, only_type: Option<&str>, is_coded: bool) -> String {
    let given = |made: String| format!("{{{{parameters.{name} == null ? null : {made}}}}}");
    if is_coded {
        return given(format!("toJSON(parameters.{name})"));
    }
    let style = parameter.text("style");
    let separator = match (place, style) {
        ("query", Some("spaceDelimited")) => " ",
        ("query", Some("pipeDelimited")) => "|",
        _ => ",",
    };
    let is_exploded = match parameter.value.get("explode").and_then(Value::as_bool) {
        Some(said) => said,
        None => style.unwrap_or("form") == "form",
    };
    match only_type {
        Some("array") if place != "query" || !is_exploded => {
            given(format!("join(parameters.{name}; '{separator}')"))
        }
        _ => format!("{{{{parameters.{name}}}}}"),
    }
}
