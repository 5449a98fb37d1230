//! The access rule of each method, the REST routes, and a macro a service that its implementation is checked against.

use std::fmt::Write;

use heck::{ToShoutySnakeCase, ToSnakeCase, ToUpperCamelCase};
use prost_reflect::{MethodDescriptor, ServiceDescriptor};

use crate::options::{Contract, MethodOptions, rust_type};

pub fn implementations(contract: &Contract) -> String {
    scopes(contract) + &methods(contract) + &routes(contract) + &service_macros(contract)
}

/// A type for each scope, so that a handler's scope is part of its signature.
fn scopes(contract: &Contract) -> String {
    let mut code = String::from("/// The scopes, each a type.\npub mod scope {\n");
    let scope = contract
        .enums()
        .find(|kind| kind.name() == "Scope")
        .expect("the Scope enum");
    for value in scope.values().filter(|value| value.number() != 0) {
        let name = crate::options::short_name(&scope, value.name()).to_upper_camel_case();
        let _ = writeln!(code, "    crate::access::scope_type!({name});");
    }
    code + "}\n"
}

fn rpc_path(service: &ServiceDescriptor, method: &MethodDescriptor) -> String {
    format!("/{}/{}", service.full_name(), method.name())
}

fn methods(contract: &Contract) -> String {
    let mut rows = Vec::new();
    for service in contract.services() {
        for method in service.methods() {
            let options = contract.method_options(&method);
            let access = access(&options, &rpc_path(&service, &method));
            let reads = options.http.as_ref().is_some_and(|http| http.verb == "get");
            rows.push(format!(
                "    crate::access::Method {{ path: {:?}, access: {access}, admin_only: {}, reads: {reads} }},\n",
                rpc_path(&service, &method),
                options.admin_only,
            ));
        }
    }
    rows.sort();
    format!(
        "/// Every method of the contract, sorted by path.\npub static METHODS: &[crate::access::Method] = &[\n{}];\n",
        rows.concat()
    )
}

fn access(options: &MethodOptions, path: &str) -> String {
    match (options.access.as_str(), &options.scope) {
        ("Key", Some(scope)) => {
            format!(
                "crate::access::Access::Key(crate::v1::Scope::{})",
                scope.to_upper_camel_case()
            )
        }
        ("Key", None) => panic!("{path} names neither a scope nor another access rule"),
        (access, _) => format!("crate::access::Access::{access}"),
    }
}

/// The route of each REST method, and a macro that visits them with their message types.
fn routes(contract: &Contract) -> String {
    let (mut constants, mut visits) = (String::new(), String::new());
    for service in contract.services() {
        for method in service.methods() {
            let options = contract.method_options(&method);
            let Some(http) = &options.http else { continue };
            let constant = method.name().to_shouty_snake_case();
            let path = method.input().fields().fold(http.path.clone(), |path, field| {
                path.replace(
                    &format!("{{{}}}", field.name()),
                    &format!("{{{}}}", field.json_name()),
                )
            });
            let _ = writeln!(
                constants,
                "    pub static {constant}: Route = Route {{ verb: {:?}, path: {path:?}, rpc: {:?}, success_status: {} }};",
                http.verb.to_uppercase(),
                rpc_path(&service, &method),
                options.success_status,
            );
            let shape = if method.is_server_streaming() {
                "stream"
            } else {
                "unary"
            };
            let public = |name: &str| rust_type(name).replace("crate::", "$crate::");
            let _ = writeln!(
                visits,
                "        $visit!({shape} $context, $crate::routes::{constant}, {}, {});",
                public(method.input().name()),
                public(method.output().name()),
            );
        }
    }
    format!(
        "/// The REST routes.
pub mod routes {{
    use crate::rest::Route;
{constants}}}

/// Visits every REST route: `$visit!(unary|stream context, route, Request, Response)`.
#[macro_export]
macro_rules! for_each_route {{
    ($visit:ident, $context:ident) => {{
{visits}    }};
}}
"
    )
}

/// For each service `NAME_methods!(callback, Type)`: hands the callback the service's methods with their types and
/// their scopes, so that an implementation with another signature does not compile.
fn service_macros(contract: &Contract) -> String {
    let mut code = String::new();
    for service in contract.services() {
        let module = format!("{}_server", service.name().to_snake_case());
        let mut methods = String::new();
        for method in service.methods() {
            let options = contract.method_options(&method);
            let public = |name: &str| rust_type(name).replace("crate::", "$crate::");
            let shape = match method.is_server_streaming() {
                true => format!("stream({}Stream)", method.name()),
                false => "unary()".to_owned(),
            };
            let _ = writeln!(
                methods,
                "            {shape} {}({}) -> {} as {};",
                method.name().to_snake_case(),
                public(method.input().name()),
                public(method.output().name()),
                authorization(&options),
            );
        }
        let _ = writeln!(
            code,
            "/// The methods of `{name}`, for the macro that implements it.
#[macro_export]
macro_rules! {macro_name}_methods {{
    ($callback:ident, $implementation:ty) => {{
        $callback! {{ $implementation, $crate::v1::{module}::{name}, {{
{methods}        }} }}
    }};
}}",
            name = service.name(),
            macro_name = service.name().to_snake_case(),
        );
    }
    code
}

fn authorization(options: &MethodOptions) -> String {
    match (options.access.as_str(), &options.scope) {
        ("Key", Some(scope)) => {
            let scope = format!("$crate::scope::{}", scope.to_upper_camel_case());
            match options.admin_only {
                true => format!("$crate::access::AdminOnly<{scope}>"),
                false => scope,
            }
        }
        (access, _) => format!("$crate::access::{access}"),
    }
}
