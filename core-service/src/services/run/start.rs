//! The start of a run: what the caller's request means, and what it is refused for.

use std::sync::Arc;

use contract::scope::WorkflowWrite;
use contract::v1::{self, ErrorReason};
use engine::start::{Start, StartError, StartFrom};
use prost::Message as _;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::auth::Authorized;
use crate::clock;
use crate::error::{Error, Result};
use crate::runtime::{GraphRef, Lineage, PlanError, StartRun, StartRunError, Started, Trigger};
use crate::services::credential::check_credentials;
use crate::services::{Services, graph};
use crate::store::{IdempotencyKey, Organization, Refusal};

/// How long an idempotency key finds its run, in milliseconds.
pub(in crate::services) const KEY_LIFETIME_MS: i64 = 24 * 60 * 60 * 1000;

/// Starts a run of a draft, asked for by the API.
pub(super) async fn by_call(
    services: &Services,
    caller: &Authorized<WorkflowWrite>,
    request: v1::StartRunRequest,
) -> Result<Started> {
    let workflow = services
        .store
        .workflow(caller.organization_id(), &request.workflow_id)
        .await?;
    let draft = graph::parse(&workflow.draft.graph)?;
    let from_node = start_node(&request)?;
    let idempotency = idempotency(&request);
    let seeds = seeds(services, caller.organization_id(), &request, from_node).await?;
    if let Some(id) = from_node.filter(|id| draft.node(*id).is_none()) {
        return Err(Error::invalid(
            "nodeId",
            format!("names node {id}, which the workflow does not have"),
        ));
    }
    check_credentials(services, caller.organization_id(), &draft).await?;
    let start = Start {
        from: from_node.map_or(StartFrom::Manual, StartFrom::Node),
        seeds,
        timeout_ms: workflow.execution_timeout_ms.map(i64::unsigned_abs),
        ..Start::manual()
    };
    let trigger = Trigger {
        kind: "manual".to_owned(),
        node_id: from_node,
        ..Trigger::default()
    };
    let frozen = services
        .freeze(
            caller.organization_id(),
            &workflow.id,
            &draft,
            &workflow.draft.graph,
        )
        .await?;
    let run = StartRun {
        organization_id: caller.organization_id().to_owned(),
        workflow_id: workflow.id,
        workflow_name: workflow.name,
        graph: GraphRef::Frozen(frozen),
        version_no: None,
        start,
        trigger,
        idempotency,
        tick: None,
        lineage: Lineage::default(),
        created_by: Some(caller.user_id().to_owned()),
        metered: caller.organization().is_metered(),
        actor: Some(caller.actor()),
    };
    match check_billing(caller.organization()) {
        Ok(()) => Ok(services.runtime.start_run(run).await?),
        Err(refusal) => replay(services, &run).await?.ok_or(refusal),
    }
}

/// The run that an idempotency key has started, if it has: a repeated request is answered whatever the bill says,
/// because it starts nothing.
pub(in crate::services) async fn replay(services: &Services, run: &StartRun) -> Result<Option<Started>> {
    let Some(key) = &run.idempotency else {
        return Ok(None);
    };
    let found = services
        .store
        .idempotent_run(&run.organization_id, &run.workflow_id, &key.key)
        .await?;
    match found {
        None => Ok(None),
        Some(found) if found.body_hash == key.body_hash => Ok(Some(Started {
            run_id: found.run_id,
            replayed: true,
            ended: None,
        })),
        Some(_) => Err(StartRunError::KeyReused.into()),
    }
}

/// Whether the organization may start and resume runs.
pub(in crate::services) fn check_billing(organization: &Organization) -> Result<()> {
    let Some(refusal) = organization.refusal() else {
        return Ok(());
    };
    let reason = match refusal {
        Refusal::PastDue => ErrorReason::PaymentRequired,
        Refusal::NoActivePlan => ErrorReason::PlanLimitExceeded,
    };
    Err(Error::new(reason, refusal.sentence()))
}

/// The node to start at: the request's own or its seed's.
fn start_node(request: &v1::StartRunRequest) -> Result<Option<i64>> {
    let own = request.node_id.as_deref().map(str::parse::<i64>).transpose();
    let own = own.map_err(|_| Error::invalid("nodeId", "must be the number of a node, as text"))?;
    let seed = request.seed_from_run.as_ref().and_then(|seed| seed.node_id);
    match (own, seed) {
        (Some(own), Some(seed)) if own != seed => Err(Error::invalid(
            "seedFromRun.nodeId",
            "differs from nodeId; give one of them",
        )),
        (own, seed) => Ok(own.or(seed)),
    }
}

async fn seeds(
    services: &Services,
    organization_id: &str,
    request: &v1::StartRunRequest,
    from_node: Option<i64>,
) -> Result<Vec<(i64, Arc<Value>)>> {
    let Some(seed) = &request.seed_from_run else {
        return request
            .upstream_outputs
            .iter()
            .map(|(id, output)| given_seed(id, output))
            .collect();
    };
    if !request.upstream_outputs.is_empty() {
        return Err(Error::invalid(
            "seedFromRun",
            "cannot be used together with upstreamOutputs",
        ));
    }
    if from_node.is_none() {
        return Err(Error::invalid(
            "seedFromRun.nodeId",
            "is required: the node to start at",
        ));
    }
    let unusable = || Error::invalid("seedFromRun.runId", "must name a run of this workflow");
    let report = match services.runtime.report(organization_id, &seed.run_id).await {
        Err(crate::runtime::ReportError::NotFound) => return Err(unusable()),
        report => report?,
    };
    if report.run.workflow_id.as_ref() != Some(&request.workflow_id) {
        return Err(unusable());
    }
    // Which of them are above the node is the plan's to say; the engine leaves out what runs anew.
    let outputs = report
        .state
        .nodes()
        .filter(|node| node.iteration.to_string().is_empty());
    Ok(outputs
        .filter_map(|node| node.output.map(|output| (node.node.id, Arc::clone(output))))
        .collect())
}

fn given_seed(id: &str, output: &v1::JsonValue) -> Result<(i64, Arc<Value>)> {
    let path = format!("upstreamOutputs.{id}");
    let number = id
        .parse()
        .map_err(|_| Error::invalid(&path, "must be named by the number of a node"))?;
    let value = wire::json::value(Some(output), &path)?.unwrap_or_default();
    Ok((number, Arc::new(value)))
}

fn idempotency(request: &v1::StartRunRequest) -> Option<IdempotencyKey> {
    let key = request.idempotency_key.clone()?;
    let body = v1::StartRunRequest {
        idempotency_key: None,
        ..request.clone()
    };
    Some(IdempotencyKey {
        key,
        body_hash: Sha256::digest(body.encode_to_vec()).to_vec(),
        expires_at: clock::now_ms() + KEY_LIFETIME_MS,
    })
}

/// The refusal of an organization that has used up its credits.
pub(super) fn out_of_credits() -> Error {
    Error::new(
        ErrorReason::PlanLimitExceeded,
        "The organization has no credits left.",
    )
}

impl From<StartRunError> for Error {
    fn from(error: StartRunError) -> Self {
        match error {
            StartRunError::Plan(PlanError::Problems(problems)) => graph::refusal(&problems),
            StartRunError::Plan(PlanError::NotFound) => Self::not_found("graph"),
            StartRunError::Plan(PlanError::Store(error)) => error.into(),
            StartRunError::Start(StartError::UnknownNode(id)) => Self::invalid(
                "nodeId",
                format!("names node {id}, which the workflow does not have"),
            ),
            StartRunError::Start(error) => Self::new(
                ErrorReason::TopologyInvalid,
                format!("The workflow cannot be started: {error}."),
            ),
            StartRunError::KeyReused => Self::new(
                ErrorReason::IdempotencyKeyReused,
                "The Idempotency-Key was used for another request; use a new one.",
            ),
            StartRunError::OutOfCredits => out_of_credits(),
            StartRunError::Overloaded => Self::unavailable("Too many runs are under way; try again soon."),
            StartRunError::Unavailable => {
                Self::unavailable("Runs cannot be started at the moment; try again soon.")
            }
            error => Self::internal(error),
        }
    }
}
