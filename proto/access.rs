//! Who may call what, as types and as a table.

use std::marker::PhantomData;

use crate::v1::Scope;

/// The access rule of one method.
#[derive(Debug)]
pub struct Method {
    /// gRPC path, `/package.Service/Method`.
    pub path: &'static str,
    /// Who may call.
    pub access: Access,
    /// Whether the key's user must be an owner or an admin.
    pub admin_only: bool,
    /// Whether the method only reads; tells which rate limit counts.
    pub reads: bool,
}

/// Who may call a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A key with this scope.
    Key(Scope),
    /// Anyone; the request carries its own capability.
    Public,
    /// The operator.
    Operator,
}

impl Method {
    /// The method at a gRPC path, if the contract has one there.
    pub fn find(path: &str) -> Option<&'static Method> {
        let index = crate::METHODS
            .binary_search_by(|method| method.path.cmp(path))
            .ok()?;
        crate::METHODS.get(index)
    }
}

/// What a caller has shown before a handler runs; each rule is a type.
pub trait Rule: Send + Sync + 'static {
    /// Who passes: [`ByKey`], [`ByAnyone`] or [`ByOperator`].
    type Passes;
    /// The rule as a value.
    const ACCESS: Access;
}

/// Holders of an API key pass.
#[derive(Debug)]
pub struct ByKey;

/// Anyone passes.
#[derive(Debug)]
pub struct ByAnyone;

/// The operator passes.
#[derive(Debug)]
pub struct ByOperator;

/// Anyone may call.
#[derive(Debug)]
pub struct Public;

impl Rule for Public {
    type Passes = ByAnyone;
    const ACCESS: Access = Access::Public;
}

/// The operator may call.
#[derive(Debug)]
pub struct Operator;

impl Rule for Operator {
    type Passes = ByOperator;
    const ACCESS: Access = Access::Operator;
}

/// Owners and admins whose key has the scope may call.
#[derive(Debug)]
pub struct AdminOnly<S>(PhantomData<S>);

impl<S: Rule> Rule for AdminOnly<S> {
    type Passes = S::Passes;
    const ACCESS: Access = S::ACCESS;
}

macro_rules! scope_type {
    ($name:ident) => {
        /// Keys that hold this scope may call.
        #[derive(Debug)]
        pub struct $name;

        impl $crate::access::Rule for $name {
            type Passes = $crate::access::ByKey;
            const ACCESS: $crate::access::Access = $crate::access::Access::Key($crate::v1::Scope::$name);
        }
    };
}
pub(crate) use scope_type;
