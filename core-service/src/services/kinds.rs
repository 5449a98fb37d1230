//! The kinds and apps that an organization has now, for whoever looks into its graphs.

use super::Services;
use crate::connectors::Apps;
use crate::error::Result;
use crate::nodes::OrganizationKinds;

impl Services {
    /// The kinds that nodes of an organization may have.
    pub(super) async fn kinds(&self, organization_id: &str) -> Result<OrganizationKinds> {
        Ok(self.registry.of(organization_id).await?)
    }

    /// The apps that an organization has.
    pub(super) async fn apps(&self, organization_id: &str) -> Result<Apps> {
        Ok(self.catalog.newest(organization_id).await?)
    }
}
