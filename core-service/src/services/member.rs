//! Members of an organization.

use contract::access::AdminOnly;
use contract::json::Words as _;
use contract::scope::InvitationRead;
use contract::v1;
use wire::cursor::Pages;

use super::{Services, page_size, service};
use crate::auth::Authorized;
use crate::error::Result;
use crate::store::{Member, Role};

const DEFAULT_PAGE: i64 = 100;

pub(super) struct Members {
    services: Services,
}

contract::member_service_methods!(service, Members);

impl Members {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_members(
        &self,
        caller: Authorized<AdminOnly<InvitationRead>>,
        request: v1::ListMembersRequest,
    ) -> Result<v1::ListMembersResponse> {
        let pages = Pages::of(&["members"]);
        let after: Option<String> = pages.position(&request.cursor)?;
        let size = page_size(request.limit, DEFAULT_PAGE);
        let store = &self.services.store;
        let mut rows = store
            .list_members(caller.organization_id(), after.as_deref(), size + 1)
            .await?;
        let next_cursor = pages.cut(&mut rows, size, |last| last.user_id.clone());
        Ok(v1::ListMembersResponse {
            data: rows.into_iter().map(shown).collect(),
            next_cursor,
        })
    }
}

fn shown(member: Member) -> v1::Member {
    v1::Member {
        user_id: member.user_id,
        email: Some(member.email),
        name: member.name,
        role: role(member.role),
        created_at: member.created_at,
    }
}

/// A role as the contract numbers it.
pub(super) fn role(role: Role) -> i32 {
    v1::MemberRole::from_word(role.as_word()).unwrap_or_default()
}
