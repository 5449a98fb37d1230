//! What a PATCH changes: a field that its mask names is set, or cleared when it has no value.

use pbjson_types::FieldMask;

use crate::error::{Error, Result};

/// Reads the fields of one request against its mask. Without a mask, the fields that have a value are named.
pub(super) struct Change<'a> {
    mask: Option<&'a FieldMask>,
}

impl<'a> Change<'a> {
    /// The change that a mask describes.
    ///
    /// # Errors
    /// When it names a field that cannot be changed.
    pub(super) fn new(mask: Option<&'a FieldMask>, changeable: &[&str]) -> Result<Self> {
        let unknown = mask.and_then(|mask| {
            mask.paths
                .iter()
                .find(|path| !changeable.contains(&path.as_str()))
        });
        match unknown {
            Some(path) => Err(Error::invalid(
                "updateMask",
                format!("names {path}, which cannot be changed"),
            )),
            None => Ok(Self { mask }),
        }
    }

    fn names(&self, field: &str, has_value: bool) -> bool {
        self.mask
            .map_or(has_value, |mask| mask.paths.iter().any(|path| path == field))
    }

    /// A field that must keep a value.
    ///
    /// # Errors
    /// When it is named without one.
    pub(super) fn set<T>(&self, field: &str, value: Option<T>) -> Result<Option<T>> {
        match (self.names(field, value.is_some()), value) {
            (false, _) => Ok(None),
            (true, Some(value)) => Ok(Some(value)),
            (true, None) => Err(Error::invalid(field, "must not be null")),
        }
    }

    /// A field that can be cleared: `Some(None)` clears.
    pub(super) fn set_or_clear<T>(&self, field: &str, value: Option<T>) -> Option<Option<T>> {
        self.names(field, value.is_some()).then_some(value)
    }
}
