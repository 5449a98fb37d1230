//! What a request message takes from path, query and headers, and what is done to it before it is looked at.

use std::collections::BTreeSet;
use std::fmt::Write;

use heck::{ToSnakeCase, ToUpperCamelCase};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::options::{
    Contract, Http, MASK, PACKAGE, in_path, is_optional, is_outside_body, rust_field, rust_type,
};

/// The fields of a REST request that its body does not hold: those of path, query and headers, and the mask.
pub fn fields_outside_body(contract: &Contract, message: &MessageDescriptor) -> BTreeSet<String> {
    let Some(http) = binding_of(contract, message) else {
        return BTreeSet::new();
    };
    message
        .fields()
        .filter(|field| !http.has_body || is_outside_body(contract, &http, field))
        .map(|field| field.name().to_owned())
        .collect()
}

fn binding_of(contract: &Contract, message: &MessageDescriptor) -> Option<Http> {
    let methods = contract
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let method = methods.into_iter().find(|method| method.input() == *message)?;
    contract.method_options(&method).http
}

/// `RestRequest` and `RestResponse` for the messages of REST methods, `Trim` for every request.
pub fn implementations(contract: &Contract) -> String {
    let mut code = String::new();
    for service in contract.services() {
        for method in service.methods() {
            let options = contract.method_options(&method);
            if let Some(http) = options.http {
                code.push_str(&rest_request(contract, &http, &method.input()));
                let name = rust_type(method.output().name());
                let created = match options.created_when.as_str() {
                    "" => String::new(),
                    field => format!(
                        "fn created(&self) -> bool {{ self.data.as_ref().is_some_and(|data| data.{field}) }}"
                    ),
                };
                if method.is_server_streaming() {
                    code.push_str(&rest_event(&method.output()));
                } else {
                    let _ = writeln!(code, "impl crate::rest::RestResponse for {name} {{ {created} }}");
                }
            }
        }
    }
    code + &trims(contract)
}

fn rest_request(contract: &Contract, http: &Http, message: &MessageDescriptor) -> String {
    let mut arms = String::new();
    let (mut query, mut headers) = (Vec::new(), Vec::new());
    for field in message.fields().filter(|field| field.name() != MASK) {
        let header = contract.field_options(&field).header;
        if !header.is_empty() {
            headers.push(format!("({:?}, {:?})", header.to_lowercase(), field.json_name()));
        } else if !in_path(http, &field) {
            if http.has_body {
                continue;
            }
            query.push(format!("{:?}", field.json_name()));
        }
        let _ = writeln!(
            arms,
            "            {:?} => {{ {}; Ok(()) }}",
            field.json_name(),
            assignment(&field)
        );
    }
    let bind = match arms.is_empty() {
        true => "let _ = (name, value); Err(crate::rest::BindError::unknown())".to_owned(),
        false => format!(
            "match name {{\n{arms}            _ => Err(crate::rest::BindError::unknown()),\n        }}"
        ),
    };
    let mask = message
        .get_field_by_name(MASK)
        .map(|_| update_mask(message))
        .unwrap_or_default();
    let has_mask = !mask.is_empty();
    format!(
        "impl crate::rest::RestRequest for {name} {{
    const QUERY: &'static [&'static str] = &[{query}];
    const HEADERS: &'static [(&'static str, &'static str)] = &[{headers}];
    const HAS_BODY: bool = {has_body};
    const HAS_MASK: bool = {has_mask};
    fn bind(&mut self, name: &str, value: &str) -> Result<(), crate::rest::BindError> {{
        {bind}
    }}
    {mask}
}}
",
        name = rust_type(message.name()),
        query = query.join(", "),
        headers = headers.join(", "),
        has_body = http.has_body,
    )
}

/// A stream's message is an `event_id` and one oneof, whose members are the kinds of events.
fn rest_event(message: &MessageDescriptor) -> String {
    let oneof = message.oneofs().next().expect("a oneof of events");
    let name = rust_type(message.name());
    let union = format!(
        "crate::v1::{}::{}",
        message.name().to_snake_case(),
        oneof.name().to_upper_camel_case()
    );
    let arms: String = oneof
        .fields()
        .map(|field| {
            let (variant, event) = (field.name().to_upper_camel_case(), field.name());
            format!("Some({union}::{variant}(event)) => ({event:?}, serde_json::to_string(event)?), ")
        })
        .collect();
    format!(
        "impl crate::rest::RestEvent for {name} {{
    fn id(&self) -> &str {{ &self.event_id }}
    fn event(&self) -> Result<Option<(&'static str, String)>, serde_json::Error> {{
        Ok(Some(match &self.{} {{ {arms} None => return Ok(None) }}))
    }}
}}
",
        oneof.name()
    )
}

fn assignment(field: &FieldDescriptor) -> String {
    let target = rust_field(field);
    let value = match field.kind() {
        Kind::String => "value.to_owned()".to_owned(),
        Kind::Int32 | Kind::Int64 => "crate::rest::integer(value)?".to_owned(),
        Kind::Enum(kind) => format!("crate::rest::word::<{}>(value)?", rust_type(kind.name())),
        kind => panic!("{}: {kind:?} cannot come from a path or query", field.full_name()),
    };
    match is_optional(field) {
        true => format!("self.{target} = Some({value})"),
        false => format!("self.{target} = {value}"),
    }
}

fn update_mask(message: &MessageDescriptor) -> String {
    let arms: String = message
        .fields()
        .filter(|field| field.name() != MASK)
        .map(|field| format!("{:?} => {:?}, ", field.json_name(), field.name()))
        .collect();
    format!(
        "fn set_update_mask(&mut self, keys: &mut dyn Iterator<Item = &str>) {{
        let paths = keys.map(|key| match key {{ {arms} other => other }}.to_owned()).collect();
        self.{MASK} = Some(::pbjson_types::FieldMask {{ paths }});
    }}"
    )
}

/// `Trim` for every request, and for what it holds.
fn trims(contract: &Contract) -> String {
    let mut code = String::new();
    for message in contract.messages() {
        let mut statements = String::new();
        for field in message.fields() {
            if let Some(statement) = trim_statement(contract, &message, &field) {
                let _ = writeln!(statements, "        {statement}");
            }
        }
        let body = match statements.is_empty() {
            true => String::new(),
            false => format!("\n    fn trim(&mut self) {{\n{statements}    }}\n"),
        };
        let _ = writeln!(
            code,
            "impl crate::rest::Trim for {} {{{body}}}",
            rust_type(message.name())
        );
    }
    code
}

fn trim_statement(
    contract: &Contract,
    message: &MessageDescriptor,
    field: &FieldDescriptor,
) -> Option<String> {
    let target = rust_field(field);
    if contract.field_options(field).trim {
        return Some(match is_optional(field) {
            true => format!("self.{target}.iter_mut().for_each(crate::rest::trim_text);"),
            false => format!("crate::rest::trim_text(&mut self.{target});"),
        });
    }
    let Kind::Message(inner) = field.kind() else {
        return None;
    };
    if inner.package_name() != PACKAGE || field.is_map() || !holds_trims(contract, &inner, 0) {
        return None;
    }
    if let Some(oneof) = field.containing_oneof().filter(|oneof| !oneof.is_synthetic()) {
        let path = format!(
            "crate::v1::{}::{}",
            message.name().to_snake_case(),
            oneof.name().to_upper_camel_case()
        );
        let variant = field.name().to_upper_camel_case();
        return Some(format!(
            "if let Some({path}::{variant}(member)) = &mut self.{} {{ member.trim(); }}",
            oneof.name()
        ));
    }
    Some(format!(
        "self.{target}.iter_mut().for_each(crate::rest::Trim::trim);"
    ))
}

fn holds_trims(contract: &Contract, message: &MessageDescriptor, depth: usize) -> bool {
    depth < 8
        && message.fields().any(|field| {
            contract.field_options(&field).trim
                || matches!(field.kind(), Kind::Message(inner) if inner.package_name() == PACKAGE
                    && !field.is_map() && holds_trims(contract, &inner, depth + 1))
        })
}
