//! Push notifications of this supervisor's tasks: where their configurations are kept, and how they are taken up
//! again after a restart.

mod resume;
mod store;

pub use resume::take_up;
pub use store::StoredPushes;
