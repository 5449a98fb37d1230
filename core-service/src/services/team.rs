//! Teams.

use contract::scope::WorkflowRead;
use contract::v1;

use super::{Services, service};
use crate::auth::Authorized;
use crate::error::Result;
use crate::store::Team;

pub(super) struct Teams {
    services: Services,
}

contract::team_service_methods!(service, Teams);

impl Teams {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_teams(
        &self,
        caller: Authorized<WorkflowRead>,
        _request: v1::ListTeamsRequest,
    ) -> Result<v1::ListTeamsResponse> {
        let rows = self.services.store.list_teams(caller.organization_id()).await?;
        Ok(v1::ListTeamsResponse {
            data: rows.into_iter().map(shown).collect(),
        })
    }
}

fn shown(team: Team) -> v1::Team {
    v1::Team {
        id: team.id,
        name: team.name,
        created_at: team.created_at,
    }
}
