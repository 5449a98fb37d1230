//! The contract as its descriptors tell it, with our options as plain values.

use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, EnumDescriptor, ExtensionDescriptor, FieldDescriptor, Kind,
    MessageDescriptor, MethodDescriptor, OneofDescriptor, ReflectMessage, ServiceDescriptor, Value,
};

/// The package that holds the contract.
pub const PACKAGE: &str = "switchyard.v1";

/// The field that says which fields an update changes.
pub const MASK: &str = "update_mask";

/// The compiled protos and the extensions that our options are.
#[derive(Debug)]
pub struct Contract {
    pool: DescriptorPool,
}

/// What `google.api.http` and our `method` option say of a method.
pub struct MethodOptions {
    /// The REST binding, if the method has one.
    pub http: Option<Http>,
    /// The scope's name, such as `WORKFLOW_READ`.
    pub scope: Option<String>,
    /// Whether only owners and admins may call.
    pub admin_only: bool,
    /// `Key`, `Public` or `Operator`.
    pub access: String,
    /// HTTP status of a success.
    pub success_status: i32,
    /// Name of the boolean in `data` that makes the status 201; empty for none.
    pub created_when: String,
    /// Names of the method's own error reasons, such as `NOT_FOUND`.
    pub errors: Vec<String>,
}

/// A REST binding.
pub struct Http {
    /// HTTP method in lower case.
    pub verb: &'static str,
    /// Path, parameters by the names of their fields.
    pub path: String,
    /// Whether a JSON body fills what path and headers do not.
    pub has_body: bool,
}

/// What our `field` option says of a field.
#[derive(Default)]
pub struct FieldOptions {
    /// Whether the field may be null in requests, and is null instead of absent in responses.
    pub nullable: bool,
    /// Header that fills the field; empty for none.
    pub header: String,
    /// Whether white space around the text is removed.
    pub trim: bool,
    /// What is used when the caller names no value; empty for nothing.
    pub default_value: String,
    /// An example as JSON; empty for none.
    pub example: String,
    /// Whether a body must have the key, though its value may be empty.
    pub required_key: bool,
}

/// The JSON form of a message.
#[derive(PartialEq)]
pub enum Form {
    /// An object with a key for each field.
    Fields,
    /// Any JSON value.
    Value,
    /// Any JSON object.
    Object,
    /// The member of the oneof, its fields beside this tag.
    Tagged(String),
    /// The member of the oneof, an integer or a string.
    Untagged,
}

impl Contract {
    /// The contract that a pool of descriptors holds.
    pub fn new(pool: DescriptorPool) -> Self {
        Self { pool }
    }

    /// All messages of the contract but the options themselves, nested ones and map entries left out.
    pub fn messages(&self) -> impl Iterator<Item = MessageDescriptor> {
        self.pool
            .all_messages()
            .filter(|message| message.package_name() == PACKAGE && !message.is_map_entry())
            .filter(|message| {
                !["rest.proto"]
                    .iter()
                    .any(|file| message.parent_file().name().ends_with(file))
            })
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// All enums of the contract.
    pub fn enums(&self) -> impl Iterator<Item = EnumDescriptor> {
        self.pool
            .all_enums()
            .filter(|kind| kind.package_name() == PACKAGE)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// All services of the contract.
    pub fn services(&self) -> impl Iterator<Item = ServiceDescriptor> {
        self.pool
            .services()
            .filter(|service| service.package_name() == PACKAGE)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// What is said of a method.
    pub fn method_options(&self, method: &MethodDescriptor) -> MethodOptions {
        let options = method.options();
        let rules = self.option(&options, "method");
        let text = |name| rules.as_ref().map(|rules| word(rules, name)).unwrap_or_default();
        let access = match text("access").as_str() {
            "PUBLIC" => "Public",
            "OPERATOR" => "Operator",
            _ => "Key",
        };
        let scope = text("scope");
        let success_status = rules.as_ref().map_or(0, |rules| integer(rules, "success_status"));
        MethodOptions {
            http: self.http(&options),
            scope: (scope != "UNSPECIFIED" && !scope.is_empty()).then_some(scope),
            admin_only: rules.as_ref().is_some_and(|rules| flag(rules, "admin_only")),
            access: access.to_owned(),
            success_status: if success_status == 0 { 200 } else { success_status },
            created_when: rules
                .as_ref()
                .map(|rules| string(rules, "created_when"))
                .unwrap_or_default(),
            errors: rules
                .as_ref()
                .map(|rules| words(rules, "errors"))
                .unwrap_or_default(),
        }
    }

    fn http(&self, options: &DynamicMessage) -> Option<Http> {
        let extension = self.pool.get_extension_by_name("google.api.http")?;
        if !options.has_extension(&extension) {
            return None;
        }
        let value = options.get_extension(&extension).into_owned();
        let rule = value.as_message()?;
        let (verb, path) = ["get", "put", "post", "delete", "patch"]
            .into_iter()
            .map(|verb| (verb, string(rule, verb)))
            .find(|(_, path)| !path.is_empty())?;
        Some(Http {
            verb,
            path,
            has_body: string(rule, "body") == "*",
        })
    }

    /// What is said of a field.
    pub fn field_options(&self, field: &FieldDescriptor) -> FieldOptions {
        self.option(&field.options(), "field")
            .map_or_else(FieldOptions::default, |rules| FieldOptions {
                nullable: flag(&rules, "nullable"),
                header: string(&rules, "header"),
                trim: flag(&rules, "trim"),
                default_value: string(&rules, "default_value"),
                example: string(&rules, "example"),
                required_key: flag(&rules, "required_key"),
            })
    }

    /// The JSON form of a message.
    pub fn form(&self, message: &MessageDescriptor) -> Form {
        let Some(rules) = self.option(&message.options(), "message") else {
            return Form::Fields;
        };
        match word(&rules, "form").as_str() {
            "VALUE" => Form::Value,
            "OBJECT" => Form::Object,
            "TAGGED" => Form::Tagged(string(&rules, "tag")),
            "UNTAGGED" => Form::Untagged,
            _ => Form::Fields,
        }
    }

    /// What `buf.validate` says of a field.
    pub fn field_rules(&self, field: &FieldDescriptor) -> Option<DynamicMessage> {
        self.extension(&field.options(), "buf.validate.field")
    }

    /// Whether `buf.validate` wants one member of a oneof to be set.
    pub fn oneof_required(&self, oneof: &OneofDescriptor) -> bool {
        self.extension(&oneof.options(), "buf.validate.oneof")
            .is_some_and(|rules| flag(&rules, "required"))
    }

    /// The row of an error: code, HTTP status, gRPC status.
    pub fn error(&self, value: &prost_reflect::EnumValueDescriptor) -> Option<(String, i32, i32)> {
        let rules = self.option(&value.options(), "error")?;
        Some((
            string(&rules, "code"),
            integer(&rules, "http_status"),
            integer(&rules, "grpc_status"),
        ))
    }

    fn option(&self, options: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
        self.extension(options, &format!("{PACKAGE}.{name}"))
    }

    fn extension(&self, options: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
        let extension: ExtensionDescriptor = self.pool.get_extension_by_name(name)?;
        let set = options.has_extension(&extension);
        set.then(|| options.get_extension(&extension).as_message().cloned())?
    }
}

fn string(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn flag(message: &DynamicMessage, name: &str) -> bool {
    message
        .get_field_by_name(name)
        .and_then(|value| value.as_bool())
        .unwrap_or_default()
}

fn integer(message: &DynamicMessage, name: &str) -> i32 {
    message
        .get_field_by_name(name)
        .and_then(|value| value.as_i32())
        .unwrap_or_default()
}

/// An enum field's value without the prefix that its type gives it.
fn word(message: &DynamicMessage, name: &str) -> String {
    let Some(field) = message.descriptor().get_field_by_name(name) else {
        return String::new();
    };
    let (Kind::Enum(kind), Value::EnumNumber(number)) =
        (field.kind(), message.get_field(&field).into_owned())
    else {
        return String::new();
    };
    kind.get_value(number)
        .map(|value| short_name(&kind, value.name()))
        .unwrap_or_default()
}

/// A repeated enum field's values without the prefix that their type gives them.
fn words(message: &DynamicMessage, name: &str) -> Vec<String> {
    let Some(field) = message.descriptor().get_field_by_name(name) else {
        return Vec::new();
    };
    let (Kind::Enum(kind), Value::List(values)) = (field.kind(), message.get_field(&field).into_owned())
    else {
        return Vec::new();
    };
    let numbers = values.iter().filter_map(Value::as_enum_number);
    numbers
        .filter_map(|number| kind.get_value(number))
        .map(|value| short_name(&kind, value.name()))
        .collect()
}

/// The words of an enum over REST. Scopes read `noun:verb`, sort keys are field names, the rest are lower case.
pub fn enum_words(kind: &EnumDescriptor) -> Vec<(String, i32)> {
    use heck::ToLowerCamelCase;
    let word = |value: String| match kind.name() {
        "Scope" => value.to_lowercase().replacen('_', ":", 1),
        name if name.ends_with("SortBy") => value.to_lower_camel_case(),
        _ => value.to_lowercase(),
    };
    kind.values()
        .filter(|value| value.number() != 0)
        .map(|value| (word(short_name(kind, value.name())), value.number()))
        .collect()
}

/// The rules that `buf.validate` has for one type of value, such as `string` or `repeated`: names and values.
pub fn typed_rules(rules: &DynamicMessage, kind: &str) -> Vec<(String, Value)> {
    let Some(Value::Message(typed)) = rules.get_field_by_name(kind).map(|value| value.into_owned()) else {
        return Vec::new();
    };
    typed
        .fields()
        .map(|(field, value)| (field.name().to_owned(), value.clone()))
        .collect()
}

/// Whether `buf.validate` says that a field must be given.
pub fn is_required(rules: &DynamicMessage) -> bool {
    flag(rules, "required")
}

/// The whole number of a rule.
pub fn number(value: &Value) -> Option<i64> {
    let signed = value.as_i64().or_else(|| value.as_i32().map(i64::from));
    signed.or_else(|| value.as_u64().and_then(|value| i64::try_from(value).ok()))
}

/// The fields of a REST request that its body does not hold: the mask, and those of path and headers.
pub fn is_outside_body(contract: &Contract, http: &Http, field: &FieldDescriptor) -> bool {
    field.name() == MASK || in_path(http, field) || !contract.field_options(field).header.is_empty()
}

/// Whether a field stands in the path.
pub fn in_path(http: &Http, field: &FieldDescriptor) -> bool {
    http.path.contains(&format!("{{{}}}", field.name()))
}

/// The name of an enum value without the prefix that its type gives it: `SUCCEEDED` of `RUN_STATUS_SUCCEEDED`.
pub fn short_name(kind: &EnumDescriptor, value: &str) -> String {
    use heck::ToShoutySnakeCase;
    let prefix = format!("{}_", kind.name().to_shouty_snake_case());
    value.strip_prefix(&prefix).unwrap_or(value).to_owned()
}

/// Whether prost makes the field an `Option`.
pub fn is_optional(field: &FieldDescriptor) -> bool {
    field.cardinality() != Cardinality::Repeated
        && (field.supports_presence() || matches!(field.kind(), Kind::Message(_)))
}

/// The Rust type of a message or enum, seen from the crate's root.
pub fn rust_type(name: &str) -> String {
    use heck::ToUpperCamelCase;
    format!("crate::v1::{}", name.to_upper_camel_case())
}

/// The Rust name of a field.
pub fn rust_field(field: &FieldDescriptor) -> String {
    match field.name() {
        "type" => "r#type".to_owned(),
        name => name.to_owned(),
    }
}
