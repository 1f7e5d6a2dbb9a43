//! Models that handle failures: [`Retrying`] asks the same model again, [`Fallback`] asks the next.
//!
//! Both only until a text or the start of a tool call was streamed. A later error goes to the caller. Thoughts do not count:
//! a new attempt streams its own, and the finished message has only those of the successful attempt.

mod attempts;
mod backoff;

pub use attempts::{Fallback, Retrying};
pub use backoff::{RetryPolicy, is_providers_fault, is_transient};
