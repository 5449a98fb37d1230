//! `buf.validate` rules as code. A rule that is not known here fails the build: none is silently skipped.
//!
//! One rule is every request's and stands in no proto: text holds no NUL, which PostgreSQL cannot store.

use std::collections::BTreeSet;
use std::fmt::Write;

use heck::{ToSnakeCase, ToUpperCamelCase};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};

use crate::options::{self, Contract, PACKAGE, is_optional, is_required, rust_field, rust_type, typed_rules};

pub fn implementations(contract: &Contract) -> String {
    let requests = messages_of_requests(contract);
    let (requested, other): (Vec<_>, Vec<_>) = contract
        .messages()
        .partition(|message| requests.contains(message.full_name()));
    let with_rules = requested.iter().map(|message| implementation(contract, message));
    // Nobody checks what the service itself answers.
    let without = other.iter().map(|message| implementation_of(message, ""));
    with_rules.chain(without).collect()
}

/// The names of all messages that requests hold.
fn messages_of_requests(contract: &Contract) -> BTreeSet<String> {
    let methods = contract
        .services()
        .flat_map(|service| service.methods().collect::<Vec<_>>());
    let mut open: Vec<MessageDescriptor> = methods.map(|method| method.input()).collect();
    let mut names = BTreeSet::new();
    while let Some(message) = open.pop() {
        if message.package_name() == PACKAGE && names.insert(message.full_name().to_owned()) {
            open.extend(
                message
                    .fields()
                    .filter_map(|field| field.kind().as_message().cloned()),
            );
        }
    }
    names
}

fn implementation(contract: &Contract, message: &MessageDescriptor) -> String {
    let mut body = String::new();
    for field in message.fields().filter(|field| !in_oneof(field)) {
        body.push_str(&field_checks(contract, &field));
    }
    for oneof in message.oneofs().filter(|oneof| !oneof.is_synthetic()) {
        let path = format!(
            "crate::v1::{}::{}",
            message.name().to_snake_case(),
            oneof.name().to_upper_camel_case()
        );
        let mut arms = String::new();
        for field in oneof.fields() {
            let checks = value_checks(contract, &field, contract.field_rules(&field).as_ref(), "value");
            // A tagged union's members stand where the union stands: they add nothing to the path.
            let (variant, name) = (field.name().to_upper_camel_case(), "");
            let _ = writeln!(
                arms,
                "Some({path}::{variant}(value)) => checker.field({name:?}, |checker| {{ let _ = (value, &checker); {checks} }}),"
            );
        }
        let missing = match contract.oneof_required(&oneof) {
            true => "checker.refuse(\"must be given\".to_owned())",
            false => "()",
        };
        let _ = writeln!(
            body,
            "match &self.{} {{ {arms} None => {missing} }}",
            oneof.name()
        );
    }
    implementation_of(message, &body)
}

fn implementation_of(message: &MessageDescriptor, body: &str) -> String {
    format!(
        "impl crate::validation::Validate for {} {{
    fn check(&self, checker: &mut crate::validation::Checker) {{ let _ = &checker; {body} }}
}}
",
        rust_type(message.name())
    )
}

fn in_oneof(field: &FieldDescriptor) -> bool {
    field
        .containing_oneof()
        .is_some_and(|oneof| !oneof.is_synthetic())
}

fn field_checks(contract: &Contract, field: &FieldDescriptor) -> String {
    let rules = contract.field_rules(field);
    let target = format!("self.{}", rust_field(field));
    let required = rules.as_ref().is_some_and(is_required);
    let present = if is_optional(field) {
        format!("{target}.is_some()")
    } else if matches!(field.kind(), Kind::Enum(_)) && !field.is_list() {
        format!("{target} != 0")
    } else if field.is_list() || field.is_map() || matches!(field.kind(), Kind::String | Kind::Bytes) {
        format!("!{target}.is_empty()")
    } else {
        assert!(
            !required,
            "{}: required needs a field with presence",
            field.full_name()
        );
        "true".to_owned()
    };
    let checks = if field.is_list() {
        list_checks(contract, field, rules.as_ref())
    } else if field.is_map() {
        map_checks(rules.as_ref())
    } else {
        value_checks(contract, field, rules.as_ref(), "value")
    };
    if !required && checks.is_empty() {
        return String::new();
    }
    let bound = match is_optional(field) {
        true => format!("if let Some(value) = &{target} {{ let _ = value; {checks} }}"),
        false => format!("let value = &{target}; let _ = value; {checks}"),
    };
    let guarded = match required {
        true => format!("if {present} {{ {bound} }} else {{ checker.refuse(\"is required\".to_owned()); }}"),
        false => bound,
    };
    format!(
        "checker.field({:?}, |checker| {{ {guarded} }});\n",
        field.json_name()
    )
}

fn list_checks(contract: &Contract, field: &FieldDescriptor, rules: Option<&DynamicMessage>) -> String {
    let mut code = String::new();
    let mut items = None;
    for (name, value) in rules_of(rules, "repeated") {
        match (name.as_str(), value) {
            ("min_items", value) => _ = write!(code, "checker.min_items(value.len(), {});", number(&value)),
            ("max_items", value) => _ = write!(code, "checker.max_items(value.len(), {});", number(&value)),
            ("unique", _) => code.push_str("checker.unique(value);"),
            ("items", Value::Message(rules)) => items = Some(rules),
            (name, _) => panic!("{}: unknown rule repeated.{name}", field.full_name()),
        }
    }
    let inner = value_checks(contract, field, items.as_ref(), "value");
    if !inner.is_empty() {
        let _ = write!(
            code,
            "for (index, value) in value.iter().enumerate() {{ checker.item(index, |checker| {{ {inner} }}); }}"
        );
    }
    code
}

fn map_checks(rules: Option<&DynamicMessage>) -> String {
    let mut code = String::new();
    for (name, value) in rules_of(rules, "map") {
        match name.as_str() {
            "max_pairs" => _ = write!(code, "checker.max_items(value.len(), {});", number(&value)),
            name => panic!("unknown rule map.{name}"),
        }
    }
    code
}

/// The checks of one value, which the code names `value` (a reference).
fn value_checks(
    contract: &Contract,
    field: &FieldDescriptor,
    rules: Option<&DynamicMessage>,
    value: &str,
) -> String {
    let mut code = String::new();
    let kind = match field.kind() {
        Kind::Message(message) => {
            if message.package_name() == PACKAGE && holds_rules(contract, &message, 0) {
                let _ = write!(code, "crate::validation::Validate::check({value}, checker);");
            }
            return code;
        }
        Kind::Enum(_) => "enum",
        Kind::String => "string",
        Kind::Int32 => "int32",
        Kind::Int64 => "int64",
        Kind::Double => "double",
        Kind::Bool => "bool",
        _ => return code,
    };
    if kind == "string" {
        let _ = write!(code, "checker.no_nul({value});");
    }
    for (name, rule) in rules_of(rules, kind) {
        let check = match (kind, name.as_str()) {
            ("string", "min_len") => format!("checker.min_len({value}, {});", number(&rule)),
            ("string", "max_len") => format!("checker.max_len({value}, {});", number(&rule)),
            ("string", "max_bytes") => format!("checker.max_bytes({value}, {});", number(&rule)),
            ("string", "email") => format!("checker.email({value});"),
            ("string", "pattern") => format!(
                "static PATTERN: crate::validation::Pattern = crate::validation::Pattern::new({0:?});
                 checker.pattern({value}, &PATTERN);",
                rule.as_str().unwrap_or_default()
            ),
            ("int32" | "int64", "gte") => {
                format!("checker.at_least(*{value}, {});", number(&rule))
            }
            ("int32" | "int64", "lte") => format!("checker.at_most(*{value}, {});", number(&rule)),
            ("double", "finite") => format!("checker.finite(*{value});"),
            ("enum", "defined_only") => defined(field, value),
            ("enum", "not_in") => format!("checker.specified(*{value});"),
            ("bool", "const") => format!(
                "checker.constant(*{value}, {});",
                rule.as_bool().unwrap_or_default()
            ),
            (kind, name) => panic!("{}: unknown rule {kind}.{name}", field.full_name()),
        };
        code.push_str(&check);
    }
    code
}

fn defined(field: &FieldDescriptor, value: &str) -> String {
    let Kind::Enum(kind) = field.kind() else {
        unreachable!("only enums have enum rules")
    };
    format!("checker.defined::<{}>(*{value});", rust_type(kind.name()))
}

/// The rules of one type: names and values.
fn rules_of(rules: Option<&DynamicMessage>, kind: &str) -> Vec<(String, Value)> {
    let Some(rules) = rules else { return Vec::new() };
    for (field, _) in rules.fields() {
        let name = field.name();
        assert!(
            name == kind || name == "required",
            "unknown rule {name} on a {kind}"
        );
    }
    typed_rules(rules, kind)
}

fn holds_rules(contract: &Contract, message: &MessageDescriptor, depth: usize) -> bool {
    let required_oneof = message.oneofs().any(|oneof| contract.oneof_required(&oneof));
    depth < 8
        && (required_oneof
            || message.fields().any(|field| {
                contract.field_rules(&field).is_some()
                    || matches!(field.kind(), Kind::String)
                    || matches!(field.kind(), Kind::Message(inner) if inner.package_name() == PACKAGE
                        && holds_rules(contract, &inner, depth + 1))
            }))
}

fn number(value: &Value) -> i64 {
    options::number(value).expect("a number that fits")
}
