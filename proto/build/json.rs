//! REST v1's JSON, as serde attributes on the generated types.
//!
//! Integers are numbers, "or null" fields are explicit nulls, enums are lower-case words: none of it is canonical
//! protobuf JSON, hence serde and not pbjson, which keeps the well-known types.

use std::collections::BTreeSet;
use std::fmt::Write;

use heck::{ToSnakeCase, ToUpperCamelCase};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use crate::options::{Contract, Form, PACKAGE, enum_words, is_optional, rust_type};
use crate::requests;

/// Messages that travel as JSON: those that a REST method takes or gives, and errors.
fn json_messages(contract: &Contract) -> Vec<MessageDescriptor> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<MessageDescriptor> = contract
        .messages()
        .filter(|message| message.name() == "ErrorResponse")
        .collect();
    for service in contract.services() {
        for method in service.methods() {
            if contract.method_options(&method).http.is_some() {
                open.push(method.input());
                if method.is_server_streaming() {
                    open.extend(
                        method
                            .output()
                            .fields()
                            .filter_map(|field| field.kind().as_message().cloned()),
                    );
                } else {
                    open.push(method.output());
                }
            }
        }
    }
    let mut found = Vec::new();
    while let Some(message) = open.pop() {
        if message.package_name() != PACKAGE || !seen.insert(message.full_name().to_owned()) {
            continue;
        }
        open.extend(
            message
                .fields()
                .filter_map(|field| field.kind().as_message().cloned()),
        );
        if !message.is_map_entry() {
            found.push(message);
        }
    }
    found
}

/// The attributes of whole messages: path and attribute.
pub fn type_attributes(contract: &Contract) -> Vec<(String, String)> {
    let derive =
        "#[derive(::serde::Serialize, ::serde::Deserialize)]\n#[serde(default, deny_unknown_fields)]";
    let plain = json_messages(contract)
        .into_iter()
        .filter(|message| contract.form(message) == Form::Fields);
    plain
        .map(|message| (format!(".{}", message.full_name()), derive.to_owned()))
        .collect()
}

/// The attributes of fields: path and attribute.
pub fn field_attributes(contract: &Contract) -> Vec<(String, String)> {
    let mut attributes = Vec::new();
    for message in json_messages(contract) {
        if contract.form(&message) != Form::Fields {
            continue;
        }
        let unbodied = requests::fields_outside_body(contract, &message);
        for field in message.fields() {
            let attribute = if unbodied.contains(field.name()) {
                "#[serde(skip)]".to_owned()
            } else {
                format!("#[serde({})]", field_rules(contract, &field).join(", "))
            };
            attributes.push((format!(".{}", field.full_name()), attribute));
        }
    }
    attributes
}

fn field_rules(contract: &Contract, field: &FieldDescriptor) -> Vec<String> {
    let mut rules = vec![format!("rename = {:?}", field.json_name())];
    let nullable = contract.field_options(field).nullable;
    let optional = is_optional(field);
    assert!(
        optional || !nullable,
        "{} is nullable but has no presence",
        field.full_name()
    );
    if let Kind::Enum(kind) = field.kind() {
        assert!(
            !field.is_list() && !nullable,
            "{}: no JSON for such an enum field",
            field.full_name()
        );
        let adapter = if optional { "OptionalWord" } else { "Word" };
        rules.push(format!(
            "with = \"crate::json::{adapter}::<{}>\"",
            rust_type(kind.name())
        ));
        let absent = if optional {
            "Option::is_none"
        } else {
            "crate::json::is_unspecified"
        };
        rules.push(format!("skip_serializing_if = {absent:?}"));
    } else if is_timestamp(field) {
        assert!(
            nullable,
            "{}: no JSON for a timestamp that is not nullable",
            field.full_name()
        );
        rules.push("with = \"crate::timestamp\"".to_owned());
    } else if is_plain_object(contract, field) {
        let read = match (field.is_list(), nullable) {
            (true, _) => "objects",
            (false, true) => "nullable_object",
            (false, false) => "object",
        };
        rules.push(format!("deserialize_with = \"crate::json::{read}\""));
        if optional && !nullable {
            rules.push("skip_serializing_if = \"Option::is_none\"".to_owned());
        }
    } else if optional && !nullable {
        rules.push("skip_serializing_if = \"Option::is_none\"".to_owned());
        rules.push("deserialize_with = \"crate::json::present\"".to_owned());
    }
    rules
}

/// Whether a field's values are objects that serde derives read.
fn is_plain_object(contract: &Contract, field: &FieldDescriptor) -> bool {
    let Kind::Message(message) = field.kind() else {
        return false;
    };
    !field.is_map() && message.package_name() == PACKAGE && contract.form(&message) == Form::Fields
}

fn is_timestamp(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(message) if message.full_name() == "google.protobuf.Timestamp")
}

/// The words of enums, and serde for messages that are not plain objects.
pub fn implementations(contract: &Contract) -> String {
    let mut code = String::new();
    for kind in contract.enums() {
        let words: Vec<String> = enum_words(&kind)
            .iter()
            .map(|(word, number)| format!("({word:?}, {number})"))
            .collect();
        let name = rust_type(kind.name());
        let _ = writeln!(code, "impl crate::json::Words for {name} {{");
        let _ = writeln!(
            code,
            "    const WORDS: &'static [(&'static str, i32)] = &[{}];\n}}",
            words.join(", ")
        );
    }
    for message in contract.messages() {
        let name = rust_type(message.name());
        match contract.form(&message) {
            Form::Fields => {}
            Form::Value => _ = writeln!(code, "crate::json::free_form!({name}, value);"),
            Form::Object => _ = writeln!(code, "crate::json::free_form!({name}, object);"),
            Form::Tagged(tag) => code.push_str(&tagged(contract, &message, &tag)),
            Form::Untagged => code.push_str(&untagged(&message)),
        }
    }
    code
}

fn tagged(contract: &Contract, message: &MessageDescriptor, tag: &str) -> String {
    let (field, path, members) = oneof(message);
    let members: Vec<String> = members
        .iter()
        .map(|member| {
            let variant = member.name().to_upper_camel_case();
            format!(
                "{:?} => {variant} {:?}",
                member.name(),
                required_keys(contract, member)
            )
        })
        .collect();
    let name = rust_type(message.name());
    format!(
        "crate::json::tagged!({name}, {field}, {path}, {tag:?}, {{ {} }});\n",
        members.join(", ")
    )
}

/// The keys that a member's object must have, if only with null.
fn required_keys(contract: &Contract, member: &FieldDescriptor) -> Vec<String> {
    let Kind::Message(message) = member.kind() else {
        return Vec::new();
    };
    let required = message
        .fields()
        .filter(|field| contract.field_options(field).required_key);
    required.map(|field| field.json_name().to_owned()).collect()
}

fn untagged(message: &MessageDescriptor) -> String {
    let (field, path, members) = oneof(message);
    let variant = |kind: Kind| {
        let member = members.iter().find(|member| member.kind() == kind);
        member
            .map(|member| member.name().to_upper_camel_case())
            .expect("an integer and a string member")
    };
    let (integer, string) = (variant(Kind::Int64), variant(Kind::String));
    let name = rust_type(message.name());
    format!("crate::json::untagged!({name}, {field}, {path}, {integer}, {string});\n")
}

/// The one oneof of a message: its field, the path of its enum, its members.
fn oneof(message: &MessageDescriptor) -> (String, String, Vec<FieldDescriptor>) {
    let oneof = message
        .oneofs()
        .find(|oneof| !oneof.is_synthetic())
        .expect("a message with a oneof");
    let module = message.name().to_snake_case();
    let path = format!("crate::v1::{module}::{}", oneof.name().to_upper_camel_case());
    (oneof.name().to_owned(), path, oneof.fields().collect())
}
