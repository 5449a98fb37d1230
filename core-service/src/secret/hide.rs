//! Whoever knows what is secret, in a form that those can use who may not know it.

use std::sync::Arc;

use super::Mask;

type Function = dyn Fn(&mut String) + Send + Sync;

/// Takes what is secret out of texts. Does nothing by default.
#[derive(Clone, Default)]
pub struct Hide(Option<Arc<Function>>);

impl Hide {
    /// Does it by a function.
    pub fn by(function: impl Fn(&mut String) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(function)))
    }

    /// Takes what is secret out of a text.
    pub fn text(&self, text: &mut String) {
        if let Some(function) = &self.0 {
            function(text);
        }
    }
}

impl From<Mask> for Hide {
    fn from(mask: Mask) -> Self {
        Self::by(move |text| mask.text(text))
    }
}
