//! Models that do not give up at once: [`Retrying`] tries the same one again, [`Fallback`] tries the next.
//!
//! Both only until something of the answer was shown: a text or the start of a tool call. From there on an error
//! is the caller's, because an answer cannot be taken back. Thoughts do not count as shown; after a new attempt
//! they are streamed again, and the finished message holds only those of the attempt that succeeded.

mod backoff;
mod relay;

pub use backoff::{RetryPolicy, is_providers_fault, is_transient};
pub use relay::{Fallback, Retrying};
