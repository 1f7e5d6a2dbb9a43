//! How what is kept of thousands of resources is kept small.

pub(crate) mod pool;
pub(crate) mod resource;
pub(crate) mod text;
