//! The activity feed: who did what.

use std::collections::{BTreeMap, BTreeSet};

use contract::access::AdminOnly;
use contract::scope::ActivityRead;
use contract::v1;

use super::{Services, given, page_size, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::id;
use crate::store::{Activity, ActivityFilter, Member, Position};

const DEFAULT_PAGE: i64 = 50;

pub(super) struct ActivityFeed {
    services: Services,
}

contract::activity_service_methods!(service, ActivityFeed);

impl ActivityFeed {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_activity(
        &self,
        caller: Authorized<AdminOnly<ActivityRead>>,
        request: v1::ListActivityRequest,
    ) -> Result<v1::ListActivityResponse> {
        let after = given(&request.cursor).map(position).transpose()?;
        let size = page_size(request.limit, DEFAULT_PAGE);
        let text = |filter: &str| given(filter).map(str::to_owned);
        let filter = ActivityFilter {
            target_type: text(&request.target_type),
            target_id: text(&request.target_id),
            actor_user_id: text(&request.actor_user_id),
            action: text(&request.action),
            since: request.since,
            until: request.until,
        };
        let store = &self.services.store;
        let mut rows = store
            .list_activity(caller.organization_id(), &filter, after.as_ref(), size + 1)
            .await?;
        let most = usize::try_from(size).unwrap_or(usize::MAX);
        let has_more = rows.len() > most;
        rows.truncate(most);
        let page = v1::ActivityPage {
            actors: self.actors(caller.organization_id(), &rows).await?,
            next_cursor: rows.last().filter(|_| has_more).map(cursor),
            events: rows.into_iter().map(shown).collect::<Result<_>>()?,
        };
        Ok(v1::ListActivityResponse { data: Some(page) })
    }

    /// Who the users of these entries are.
    async fn actors(
        &self,
        organization_id: &str,
        rows: &[Activity],
    ) -> Result<BTreeMap<String, v1::ActivityActor>> {
        let user_ids: BTreeSet<&str> = rows
            .iter()
            .filter_map(|row| row.actor_user_id.as_deref())
            .collect();
        let user_ids: Vec<&str> = user_ids.into_iter().collect();
        let members = self.services.store.members(organization_id, &user_ids).await?;
        Ok(members.into_iter().map(actor).collect())
    }
}

fn actor(member: Member) -> (String, v1::ActivityActor) {
    let actor = v1::ActivityActor {
        id: member.user_id.clone(),
        name: member.name,
        email: Some(member.email),
    };
    (member.user_id, actor)
}

fn shown(entry: Activity) -> Result<v1::ActivityEvent> {
    let metadata = String::from_utf8(entry.metadata).map_err(Error::internal)?;
    Ok(v1::ActivityEvent {
        id: entry.id,
        ts: entry.ts,
        action: entry.action,
        label: Some(entry.label).filter(|label| !label.is_empty()),
        target_type: entry.target_type,
        target_id: Some(entry.target_id).filter(|id| !id.is_empty()),
        actor_user_id: entry.actor_user_id,
        metadata: Some(v1::JsonObject { json: metadata }),
    })
}

/// `{ts}_{id}` of the last entry of a page.
fn cursor(last: &Activity) -> String {
    format!("{}_{}", last.ts, last.id)
}

/// Where a page begins. The fingerprint of other lists' cursors is absent: the specification fixes the form.
fn position(cursor: &str) -> Result<Position<i64>> {
    let parts = cursor.split_once('_').and_then(|(ts, event_id)| {
        let value = ts.parse().ok()?;
        id::is_valid(id::Kind::Event, event_id).then(|| Position {
            value,
            id: event_id.to_owned(),
        })
    });
    parts.ok_or_else(|| Error::invalid("cursor", "is not a cursor of this list; begin without one"))
}
