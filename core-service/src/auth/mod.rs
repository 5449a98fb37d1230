//! Access: a layer on the routes themselves, so that no way in passes it by, and what handlers learn from it.
//!
//! Deliberately absent: which method needs what. That stands in the protos.

mod caller;
mod gate;
mod key;
mod layer;
mod rate;

pub use caller::{Anyone, Authorized, Call, KeyHolder, Operator, Origin, Passes};
pub use gate::Gate;
pub use key::KeyHasher;
pub use layer::{Access, AccessLayer};
