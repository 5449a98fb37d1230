//! Invitations into an organization. The page where the invitee accepts is in `pages`.

use std::time::Duration;

use contract::access::AdminOnly;
use contract::json::Words as _;
use contract::scope::{InvitationRead, InvitationWrite};
use contract::v1::{self, ErrorReason};

use super::member::role;
use super::variable::unknown_team;
use super::{Services, page_size, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::pages::{Token, invitation};
use crate::secret::Place;
use crate::store::{Invitation, InvitationStatus, Invite, NewInvitation, Role};
use crate::{clock, id};

const DEFAULT_LIMIT: i64 = 200;
/// How long an invitation waits for an answer.
const VALID_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The kind of place that a link's token is sealed for.
const SEALED_AS: &str = "invitation";

pub(super) struct Invitations {
    services: Services,
}

contract::invitation_service_methods!(service, Invitations);

impl Invitations {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_invitations(
        &self,
        caller: Authorized<AdminOnly<InvitationRead>>,
        request: v1::ListInvitationsRequest,
    ) -> Result<v1::ListInvitationsResponse> {
        let status = v1::InvitationStatus::to_word(request.status).and_then(InvitationStatus::from_word);
        let size = page_size(request.limit, DEFAULT_LIMIT);
        let store = &self.services.store;
        let mut rows = store
            .list_invitations(caller.organization_id(), status, size + 1)
            .await?;
        let most = usize::try_from(size).unwrap_or(usize::MAX);
        let truncated = rows.len() > most;
        rows.truncate(most);
        let mut data = Vec::with_capacity(rows.len());
        for row in rows {
            data.push(self.shown(row).await?);
        }
        Ok(v1::ListInvitationsResponse { data, truncated })
    }

    async fn create_invitation(
        &self,
        caller: Authorized<AdminOnly<InvitationWrite>>,
        request: v1::CreateInvitationRequest,
    ) -> Result<v1::CreateInvitationResponse> {
        let role = v1::MemberRole::to_word(request.role).and_then(Role::from_word);
        let role = role.ok_or_else(|| Error::invalid("role", "is required"))?;
        if role == Role::Owner && caller.principal.role != Role::Owner {
            return Err(Error::new(
                ErrorReason::RoleEscalation,
                "Only an owner may invite an owner.",
            ));
        }
        let invitation_id = id::new(id::Kind::Invitation);
        let token = Token::generate().map_err(Error::internal)?;
        let place = place(caller.organization_id(), &invitation_id);
        let sealed = self
            .services
            .vault
            .seal(place, token.text().expose().as_bytes())
            .await?;
        let valid_for = i64::try_from(VALID_FOR.as_millis()).unwrap_or(i64::MAX);
        let new = NewInvitation {
            id: &invitation_id,
            email: &request.email,
            role,
            team_id: request.team_id.as_deref(),
            inviter_id: caller.user_id(),
            token_hash: &token.hash(),
            token: &sealed,
            expires_at: clock::now_ms().saturating_add(valid_for),
        };
        let store = &self.services.store;
        let invited = store
            .create_invitation(&caller.actor(), caller.organization_id(), &new)
            .await;
        match invited.map_err(unknown_team)? {
            Invite::Invited(invitation) => Ok(v1::CreateInvitationResponse {
                data: Some(self.shown(invitation).await?),
            }),
            Invite::Pending => Err(Error::new(
                ErrorReason::InvitationExists,
                "An invitation for this email is pending; delete it to invite anew.",
            )),
            Invite::Member => Err(Error::new(
                ErrorReason::Conflict,
                "The organization has a member with this email.",
            )),
        }
    }

    async fn delete_invitation(
        &self,
        caller: Authorized<AdminOnly<InvitationWrite>>,
        request: v1::DeleteInvitationRequest,
    ) -> Result<v1::DeleteInvitationResponse> {
        let store = &self.services.store;
        let cancelled = store
            .cancel_invitation(&caller.actor(), caller.organization_id(), &request.id)
            .await?;
        match cancelled {
            true => Ok(v1::DeleteInvitationResponse {
                data: Some(v1::Acknowledgement { ok: true }),
            }),
            false => Err(Error::new(
                ErrorReason::InvitationNotPending,
                "The invitation was accepted, cancelled or has expired.",
            )),
        }
    }

    async fn shown(&self, invitation: Invitation) -> Result<v1::Invitation> {
        let place = place(&invitation.organization_id, &invitation.id);
        let token = self.services.vault.open_text(place, &invitation.token).await?;
        Ok(v1::Invitation {
            invite_url: invitation::url(&self.services.base_url, &token),
            id: invitation.id,
            email: invitation.email,
            status: v1::InvitationStatus::from_word(invitation.status.as_word()).unwrap_or_default(),
            inviter_id: invitation.inviter_id,
            role: role(invitation.role),
            team_id: invitation.team_id,
            expires_at: invitation.expires_at,
            created_at: invitation.created_at,
        })
    }
}

fn place<'a>(organization_id: &'a str, invitation_id: &'a str) -> Place<'a> {
    Place {
        organization_id,
        kind: SEALED_AS,
        id: invitation_id,
    }
}
