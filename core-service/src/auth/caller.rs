//! Who calls, as a type that a handler takes for an argument: without it, it does not compile.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use contract::access::{ByAnyone, ByKey, ByOperator, Rule};
use contract::json::Words as _;
use contract::v1::Scope;
use http::Extensions;

use crate::error::Error;
use crate::store::{Actor, ApiKey, Authentication, Organization};

/// A call that passed the rule `R`.
pub struct Authorized<R: Rule>
where
    R::Passes: Passes,
{
    call: Call<<R::Passes as Passes>::Principal>,
    rule: PhantomData<R>,
}

/// A call and who makes it.
#[derive(Clone)]
pub struct Call<P> {
    /// Who calls.
    pub principal: P,
    /// What is known of the request.
    pub origin: Origin,
}

/// What is known of a request besides its message.
#[derive(Clone, Default)]
pub struct Origin {
    /// Its id, in logs and answers.
    pub request_id: String,
    /// The client's address, if it is known.
    pub ip: Option<String>,
}

/// The holder of an API key.
pub type KeyHolder = Arc<Authentication>;

/// Anyone at all.
#[derive(Clone)]
pub struct Anyone;

/// The holder of the operator token.
#[derive(Clone)]
pub struct Operator;

/// Ties each kind of access rule to what is known of a caller who passes it.
pub trait Passes {
    /// What is known of the caller.
    type Principal: Clone + Send + Sync + 'static;
}

impl Passes for ByKey {
    type Principal = KeyHolder;
}

impl Passes for ByAnyone {
    type Principal = Anyone;
}

impl Passes for ByOperator {
    type Principal = Operator;
}

/// Whether a key may do what needs this scope.
pub(super) fn holds(key: &ApiKey, scope: Scope) -> bool {
    let word = Scope::to_word(i32::from(scope));
    word.is_some_and(|word| key.scopes.iter().any(|held| held == word))
}

impl<R: Rule> Authorized<R>
where
    R::Passes: Passes,
{
    /// Takes what the access layer has left on a request. It leaves it only for the method's own rule.
    pub(crate) fn take(extensions: &Extensions) -> Result<Self, Error> {
        let call = extensions
            .get::<Call<<R::Passes as Passes>::Principal>>()
            .cloned();
        let call = call
            .ok_or_else(|| Error::internal("a call reached its handler without passing the access layer"))?;
        Ok(Self {
            call,
            rule: PhantomData,
        })
    }
}

impl<R: Rule> Deref for Authorized<R>
where
    R::Passes: Passes,
{
    type Target = Call<<R::Passes as Passes>::Principal>;

    fn deref(&self) -> &Self::Target {
        &self.call
    }
}

impl Call<KeyHolder> {
    /// Whether the key holds a scope besides the one that the method asks for.
    pub fn may(&self, scope: Scope) -> bool {
        holds(&self.principal.key, scope)
    }

    /// The organization that the key opens.
    pub fn organization(&self) -> &Organization {
        &self.principal.organization
    }

    /// The id of the organization that the key opens.
    pub fn organization_id(&self) -> &str {
        &self.principal.organization.id
    }

    /// The user that the key acts for.
    pub fn user_id(&self) -> &str {
        &self.principal.key.user_id
    }

    /// Who the activity feed names.
    pub fn actor(&self) -> Actor {
        Actor {
            user_id: Some(self.principal.key.user_id.clone()),
            api_key_id: Some(self.principal.key.id.clone()),
            request_id: Some(self.origin.request_id.clone()),
            ip: self.origin.ip.clone(),
        }
    }
}

impl Call<Operator> {
    /// Who the activity feed names: nobody, the operator is no user.
    pub fn actor(&self) -> Actor {
        self.origin.actor()
    }
}

impl Call<Anyone> {
    /// Who the activity feed names: nobody is known.
    pub fn actor(&self) -> Actor {
        self.origin.actor()
    }
}

impl Origin {
    fn actor(&self) -> Actor {
        Actor {
            request_id: Some(self.request_id.clone()),
            ip: self.ip.clone(),
            ..Actor::default()
        }
    }
}
