//! People who answer runs: by the API, or by the one-time link that each open request has.
//!
//! Both ways lead through [`People::answer`], so an answer is checked, paid for and recorded alike, and one wins. Absent
//! on purpose: who may call the API (services), the page behind a link (`pages`), how a run goes on (`runtime`).

mod link;

use std::sync::Arc;

use engine::event::NodeKey;
use serde_json::{Map, Value, json};

pub use link::AnswerLinks;

use crate::clock;
use crate::form::{self, Question, Wrong};
use crate::runtime::{Done, OpenQuestion, RequestError, Runtime, Waiting};
use crate::store::{Actor, BillingStatus, HumanRequest, Store, StoreError};

/// The path below the base URL that tokens follow.
pub const PATH: &str = "/answer/";

/// Takes answers. Cheap to clone.
#[derive(Clone)]
pub struct People {
    store: Store,
    runtime: Runtime,
    links: AnswerLinks,
    base_url: Arc<str>,
}

/// An answer that was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// It does not fit the form.
    #[error("the answer does not fit the form")]
    Wrong(Vec<Wrong>),
    /// Another answer was first, or the node waits no longer.
    #[error("the node was answered already")]
    InFlight,
    /// The run has ended.
    #[error("the run has ended")]
    RunEnded,
    /// The organization has an overdue bill.
    #[error("the organization has an overdue bill")]
    PastDue,
    /// The stored request cannot be read.
    #[error("the stored request is damaged")]
    Damaged(#[from] serde_json::Error),
    /// The runtime could not take it.
    #[error(transparent)]
    Request(RequestError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl People {
    /// Takes answers for these runs; links begin with `base_url`.
    pub fn new(store: Store, runtime: Runtime, links: AnswerLinks, base_url: Arc<str>) -> Self {
        Self {
            store,
            runtime,
            links,
            base_url,
        }
    }

    /// The link of a request.
    pub fn url(&self, request_id: &str) -> String {
        format!("{}{PATH}{}", self.base_url, self.links.token(request_id))
    }

    /// The request that a link's token is of: nothing inside when it is over, nothing at all when the token is none.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn find(&self, token: &str) -> Result<Option<Option<HumanRequest>>, StoreError> {
        match self.links.request_id(token) {
            Some(request_id) => self.store.find_human_request(&request_id).await.map(Some),
            None => Ok(None),
        }
    }

    /// Gives the waiting node its answer. Of several, one wins. The actor's user is who answered, as far as that is known.
    ///
    /// # Errors
    /// [`AnswerError`]; the node waits on then, unless somebody else answered.
    pub async fn answer(
        &self,
        actor: &Actor,
        request: &HumanRequest,
        answer: &Map<String, Value>,
    ) -> Result<Done, AnswerError> {
        let OpenQuestion { question, asked } = serde_json::from_slice(&request.question)?;
        let response = form::check(&question.fields, answer).map_err(AnswerError::Wrong)?;
        let organization = self.store.organization(&request.organization_id).await?;
        if organization.billing_status == BillingStatus::PastDue {
            return Err(AnswerError::PastDue);
        }
        let responded_at = jiff::Timestamp::from_millisecond(clock::now_ms()).unwrap_or_default();
        let output = json!({
            "response": response,
            "respondedBy": actor.user_id,
            "respondedAt": format!("{responded_at:.3}"),
        });
        let key = NodeKey {
            node: request.node_id,
            iteration: request.iteration.parse().unwrap_or_default(),
        };
        let (organization_id, run_id) = (&request.organization_id, &request.run_id);
        let waiting = Waiting { key, asked };
        let answered = self
            .runtime
            .answer(actor, organization_id, run_id, waiting, output);
        Ok(answered.await?)
    }
}

/// What a request asks.
///
/// # Errors
/// When the stored form cannot be read.
pub fn question(request: &HumanRequest) -> Result<Question, serde_json::Error> {
    let open: OpenQuestion = serde_json::from_slice(&request.question)?;
    Ok(open.question)
}

impl From<RequestError> for AnswerError {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Answered(_) | RequestError::NotWaiting(_) => Self::InFlight,
            RequestError::Terminal => Self::RunEnded,
            error => Self::Request(error),
        }
    }
}
