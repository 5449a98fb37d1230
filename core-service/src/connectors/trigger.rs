//! Modules that start runs: by asking a service again and again, or by being called by it.

use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::order::Order;
use super::request::RequestTemplate;
use super::template::{Reach, Template, TemplateError};

/// Asks for the module's list again and again. Each item that was not there before starts one run; what is there when
/// the trigger begins starts none.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Poll {
    /// Of each `$item` (and `parameters`): what tells it from all others, such as its id. An item whose key is new is a
    /// new item.
    pub(super) key: Template,
    /// Of each `$item` (and `parameters`): a number or a text that grows from one item to the next, such as when it was
    /// created. Items below the lowest of the first answer are old, even when they come into the list later, because others
    /// have left it. Null for an item that has none. Moments are compared by their time, other texts part by part, their
    /// digits as numbers.
    #[serde(default)]
    pub(super) order: Option<Template>,
    /// Whether the list begins with the latest item, and goes on with older and older ones. Then an item that stands below
    /// one that was there before is old.
    #[serde(default)]
    pub latest_first: bool,
    /// Whether the list is read to its end each time, because new items may stand anywhere in it. That is so anyway when
    /// none of `order`, `latestFirst` and `limit` is said. Otherwise further pages are asked for as long as all items are
    /// new. Without a `pagination` it says that one page is the whole list.
    #[serde(default)]
    pub whole: bool,
    /// Of each `$item` (and `parameters`): whether it starts a run, as each does by default. What does not is known all the
    /// same, so that it tells where the new items end.
    #[serde(default)]
    pub(super) accept: Option<Template>,
    /// For apps with a driver: the parameter of the operation that bounds the list. As long as all items are new, more are
    /// asked for than it says. It says as many as there may be where the module has no field of that name.
    #[serde(default)]
    pub limit: Option<String>,
    /// Seconds from one time to the next, from 1 to 86,400; 300 by default. A template may make it of `parameters`.
    #[serde(default)]
    pub(super) every_seconds: Option<Template>,
}

/// Has the service call a URL. Its requests and conditions reach `webhook`, an object with `url`, with `secret` (a random
/// text that is made for each trigger) and with what `keep` kept.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Webhook {
    /// Tells the service which URL to call, when the workflow is deployed. Absent where a person does that.
    #[serde(default)]
    pub(super) attach: Option<RequestTemplate>,
    /// Of the answer to `attach`: an object whose members `webhook` has from then on, such as the id of a subscription.
    #[serde(default)]
    pub(super) keep: Option<Template>,
    /// Tells the service to call no longer, when the workflow is undeployed.
    #[serde(default)]
    pub(super) detach: Option<RequestTemplate>,
    /// How deliveries prove where they come from.
    pub(super) verify: Signature,
    /// Of the delivery: whether it starts a run, as each does by default.
    #[serde(default)]
    pub(super) accept: Option<Template>,
    /// Of a delivery that is proven and accepted: what tells it from all others, such as its id. One that comes again
    /// starts no second run.
    #[serde(default)]
    pub(super) key: Option<Template>,
    /// What a service asks to see that the URL is meant to be called.
    #[serde(default)]
    pub(super) challenge: Option<Challenge>,
}

/// How deliveries prove where they come from.
#[derive(Deserialize, JsonSchema)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[expect(
    clippy::large_enum_variant,
    reason = "a manifest has a few, which stay where they are read to"
)]
pub(super) enum Signature {
    /// The secret stands in the request.
    Secret {
        /// Of the delivery: what stands there.
        given: Template,
        /// What has to stand there; `webhook.secret` by default.
        #[serde(default)]
        secret: Option<Template>,
    },
    /// The secret has signed the request.
    Hmac {
        /// The hash function.
        #[serde(default)]
        algorithm: HashFunction,
        /// Of the delivery: the signature.
        signature: Template,
        /// How the signature is written; `hex` by default.
        #[serde(default)]
        encoding: Encoding,
        /// Of the delivery: the text that is signed; `request.text` by default.
        #[serde(default)]
        signed: Option<Template>,
        /// The key; `webhook.secret` by default.
        #[serde(default)]
        secret: Option<Template>,
        /// Of the delivery: when it was signed, in seconds since 1970; refused when that is more than five minutes away.
        #[serde(default)]
        timestamp: Option<Template>,
    },
    /// They prove nothing; the URL itself is the secret.
    None {},
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum HashFunction {
    Sha1,
    #[default]
    Sha256,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Encoding {
    #[default]
    Hex,
    Base64,
}

/// A delivery that wants an answer and starts no run.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Challenge {
    /// Of the delivery: whether it is one.
    pub(super) when: Template,
    /// Of the delivery: the body of the answer; a text is sent as it is, all else as JSON.
    pub(super) answer: Template,
}

impl Poll {
    /// Seconds from one time to the next that are possible.
    pub(super) const INTERVALS: RangeInclusive<i64> = 1..=86_400;
    /// Seconds from one time to the next, when nothing is said.
    const INTERVAL: i64 = 300;

    /// What tells an item from all others; a text, whatever its key is.
    ///
    /// # Errors
    /// When the item has no key.
    pub fn key(&self, item: &Value, parameters: &Value) -> Result<String, TemplateError> {
        match self.key.evaluate(&reach_of(item, parameters))? {
            Value::Null => Err(TemplateError::new("an item has no key that tells it from others")),
            key => Ok(key.to_string()),
        }
    }

    /// Where an item stands in the order in which they come to be, if the manifest says so.
    ///
    /// # Errors
    /// When that is nothing that grows.
    pub fn order(&self, item: &Value, parameters: &Value) -> Result<Option<Order>, TemplateError> {
        let Some(order) = &self.order else { return Ok(None) };
        Order::of(order.evaluate(&reach_of(item, parameters))?)
    }

    /// Whether an item starts a run.
    ///
    /// # Errors
    /// When the template gives nothing.
    pub fn accepts(&self, item: &Value, parameters: &Value) -> Result<bool, TemplateError> {
        let accept = self.accept.as_ref();
        accept.map_or(Ok(true), |accept| accept.holds(&reach_of(item, parameters)))
    }

    /// Every template in it, after the place it stands at.
    pub(super) fn templates(&self) -> impl Iterator<Item = (&'static str, &Template)> {
        let templates = [
            ("key", Some(&self.key)),
            ("order", self.order.as_ref()),
            ("accept", self.accept.as_ref()),
            ("everySeconds", self.every_seconds.as_ref()),
        ];
        let said = templates.into_iter();
        said.filter_map(|(name, template)| Some((name, template?)))
    }

    /// Whether the manifest says what grows from one item to the next.
    #[cfg(test)]
    pub fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// Seconds from one time to the next, when they are the same for everybody.
    pub(super) fn fixed_interval(&self) -> Option<i64> {
        match &self.every_seconds {
            None => Some(Self::INTERVAL),
            Some(every) => every.literal_number(),
        }
    }

    /// Seconds from one time to the next; the nearest possible number.
    ///
    /// # Errors
    /// When the template gives no number.
    pub fn interval(&self, parameters: &Value) -> Result<i64, TemplateError> {
        let Some(every) = &self.every_seconds else {
            return Ok(Self::INTERVAL);
        };
        let mut reach = Reach::new();
        reach.parameters = Some(parameters);
        let seconds = every.evaluate(&reach)?.as_i64();
        let seconds = seconds.ok_or_else(|| TemplateError::new("everySeconds must be a whole number"))?;
        Ok(seconds.clamp(*Self::INTERVALS.start(), *Self::INTERVALS.end()))
    }
}

/// What templates of an item reach.
fn reach_of<'a>(item: &'a Value, parameters: &'a Value) -> Reach<'a> {
    let mut reach = Reach::new();
    reach.item = Some(item);
    reach.parameters = Some(parameters);
    reach
}

impl Webhook {
    /// Whether the service is told of the URL, and not a person.
    pub fn is_attached(&self) -> bool {
        self.attach.is_some()
    }

    /// Whether something of the service's answer is to be remembered.
    pub fn keeps(&self) -> bool {
        self.keep.is_some()
    }

    /// What of `webhook` deliveries are checked by, and so is as secret as `secret`.
    pub fn proofs(&self) -> impl Iterator<Item = &str> {
        let templates = self.verify.templates().into_iter();
        let fields = templates.flat_map(|(_, template)| template.fields());
        fields.filter_map(|(root, name)| (root == "webhook").then_some(name))
    }

    /// Every request in it, after the place it stands at.
    pub(super) fn requests(&self) -> impl Iterator<Item = (&'static str, &RequestTemplate)> {
        let requests = [("attach", &self.attach), ("detach", &self.detach)];
        requests
            .into_iter()
            .filter_map(|(name, request)| Some((name, request.as_ref()?)))
    }
}

impl Signature {
    /// Every template in it, after the place it stands at.
    pub(super) fn templates(&self) -> Vec<(&'static str, &Template)> {
        let found = match self {
            Self::Secret { given, secret } => vec![("given", Some(given)), ("secret", secret.as_ref())],
            Self::Hmac {
                signature,
                signed,
                secret,
                timestamp,
                ..
            } => vec![
                ("signature", Some(signature)),
                ("signed", signed.as_ref()),
                ("secret", secret.as_ref()),
                ("timestamp", timestamp.as_ref()),
            ],
            Self::None {} => Vec::new(),
        };
        let given = found.into_iter();
        given
            .filter_map(|(name, template)| Some((name, template?)))
            .collect()
    }
}
