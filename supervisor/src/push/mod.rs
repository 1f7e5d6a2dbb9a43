//! Push notifications of this supervisor's tasks: the store of their configurations, and their delivery after a restart.

mod resume;
mod store;

pub use resume::take_up;
pub use store::StoredPushes;
