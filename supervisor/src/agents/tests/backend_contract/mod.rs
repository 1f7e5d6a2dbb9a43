//! The contract of [`AgentBackend`](crate::delegation::AgentBackend): each scenario runs with each backend, and must give
//! the same events, the same outcome and the same wire events.

mod approved_calls;
mod delegate;
mod depth;
mod scenarios;
mod scratchpad;
mod wire;
mod worker;
mod workflows;
