//! Structures: named shapes that values are checked against.

use std::collections::HashSet;

use contract::scope::{StructureRead, StructureWrite};
use contract::v1::{self, ErrorReason};
use contract::validation::Violation;

use super::change::Change;
use super::reference::unresolvable;
use super::{Services, cut, page_size, service};
use crate::auth::Authorized;
use crate::error::{Error, Result};
use crate::store::{NewStructure, Structure, StructureChange, StructureCreated};

const DEFAULT_LIST: i64 = 200;

pub(super) struct Structures {
    services: Services,
}

contract::structure_service_methods!(service, Structures);

impl Structures {
    pub(super) fn new(services: &Services) -> Self {
        Self {
            services: services.clone(),
        }
    }

    async fn list_structures(
        &self,
        caller: Authorized<StructureRead>,
        request: v1::ListStructuresRequest,
    ) -> Result<v1::ListStructuresResponse> {
        let size = page_size(request.limit, DEFAULT_LIST);
        let store = &self.services.store;
        let mut rows = store.list_structures(caller.organization_id(), size + 1).await?;
        let truncated = cut(&mut rows, size);
        let data = rows.into_iter().map(summary).collect();
        Ok(v1::ListStructuresResponse { data, truncated })
    }

    async fn create_structure(
        &self,
        caller: Authorized<StructureWrite>,
        request: v1::CreateStructureRequest,
    ) -> Result<v1::CreateStructureResponse> {
        let (fields, field_count) = stored_fields(&request.fields)?;
        let new = NewStructure {
            name: &request.name,
            description: request.description.as_deref(),
            fields: &fields,
            field_count,
            folder_id: request.folder_id.as_deref(),
            team_id: request.team_id.as_deref(),
        };
        let created = self
            .services
            .store
            .create_structure(&caller.actor(), caller.organization_id(), &new)
            .await;
        match created.map_err(unresolvable)? {
            StructureCreated::Created(structure) => Ok(v1::CreateStructureResponse {
                data: Some(full(structure)?),
            }),
            StructureCreated::LimitReached(most) => Err(Error::new(
                ErrorReason::PlanLimitExceeded,
                format!(
                    "The plan allows {most} structures and all are used; change the plan to create more."
                ),
            )),
        }
    }

    async fn get_structure(
        &self,
        caller: Authorized<StructureRead>,
        request: v1::GetStructureRequest,
    ) -> Result<v1::GetStructureResponse> {
        let store = &self.services.store;
        let structure = store.structure(caller.organization_id(), &request.id).await?;
        Ok(v1::GetStructureResponse {
            data: Some(full(structure)?),
        })
    }

    async fn update_structure(
        &self,
        caller: Authorized<StructureWrite>,
        request: v1::UpdateStructureRequest,
    ) -> Result<v1::UpdateStructureResponse> {
        let change = change(&request)?;
        let store = &self.services.store;
        let updated = store
            .update_structure(&caller.actor(), caller.organization_id(), &request.id, &change)
            .await;
        let structure = updated.map_err(unresolvable)?;
        Ok(v1::UpdateStructureResponse {
            data: Some(full(structure)?),
        })
    }
}

fn change(request: &v1::UpdateStructureRequest) -> Result<StructureChange> {
    let mask = request.update_mask.as_ref();
    let names = ["name", "description", "fields", "folder_id"];
    let change = Change::new(mask, &names)?;
    let given = !request.fields.is_empty() || mask.is_some();
    let fields = change.set("fields", given.then_some(&request.fields))?;
    Ok(StructureChange {
        name: change.set("name", request.name.clone())?,
        description: change.set_or_clear("description", request.description.clone()),
        fields: fields.map(|fields| stored_fields(fields)).transpose()?,
        folder_id: change.set_or_clear("folder_id", request.folder_id.clone()),
    })
}

/// Fields as they are stored, and their number.
fn stored_fields(fields: &[v1::StructureField]) -> Result<(Vec<u8>, i64)> {
    let mut names = HashSet::new();
    let repeated = |(place, field): (usize, &v1::StructureField)| {
        (!names.insert(field.name.clone())).then(|| Violation {
            path: format!("fields[{place}].name"),
            message: "names a field that is in the list already".to_owned(),
        })
    };
    let violations: Vec<Violation> = fields.iter().enumerate().filter_map(repeated).collect();
    if !violations.is_empty() {
        return Err(Error::violations(violations));
    }
    let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    Ok((serde_json::to_vec(fields).map_err(Error::internal)?, count))
}

fn summary(structure: Structure) -> v1::StructureSummary {
    v1::StructureSummary {
        id: structure.id,
        name: structure.name,
        field_count: i32::try_from(structure.field_count).unwrap_or(i32::MAX),
    }
}

fn full(structure: Structure) -> Result<v1::Structure> {
    Ok(v1::Structure {
        id: structure.id,
        name: structure.name,
        fields: serde_json::from_slice(&structure.fields).map_err(Error::internal)?,
        description: structure.description,
        folder_id: structure.folder_id,
        team_id: structure.team_id,
    })
}
