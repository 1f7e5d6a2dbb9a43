//! The tool servers of an agent, spoken to over the Model Context Protocol.
//!
//! A [`Toolbox`] holds all servers of one agent. Each runs in a task of its own that starts it, lists its tools,
//! watches it, and starts it again when it ends, so that one broken server costs its own tools and nothing else.
//! What is on offer is published as a [`ToolsView`]; a call never fails at the caller: every failure is reported to
//! the model in words.
//!
//! Decisions are pure functions (templates, names, back-off, results in words); what touches processes and sockets is thin
//! (`process`, `session`, `server`).
//!
//! # What becomes of the children
//!
//! A child leads its own process group. It is stopped by closing its stdin, then `SIGTERM`, then `SIGKILL`, the latter two
//! to the whole group, so that what a launcher such as `npx` started goes too. If the supervisor is itself killed
//! with `SIGKILL`, its end of the pipes closes and a child sees the end of its stdin, at which the protocol obliges it to exit
//! (specification, "stdio: shutdown"); in a container it goes with the container in any case.

mod call;
mod catalog;
mod connection_error;
mod environment;
mod error;
mod server;
mod server_spec;
mod session;
mod template;
mod tolerant_transport;
mod tool_list;
mod tool_output;
mod toolbox;

pub use catalog::{ServerPhase, ServerStatus, ToolsView};
pub use error::SpecError;
pub use server_spec::{ServerSpec, Transport};
pub use template::{TemplateError, fill};
pub use toolbox::Toolbox;
