//! The client of the tool servers of an agent (Model Context Protocol).
//!
//! A [`Toolbox`] holds all servers of one agent. Each runs in a task of its own that starts it, lists its tools,
//! watches it, and restarts it when it ends, so that a broken server only affects its own tools.
//! The offered tools are published as a [`ToolsView`]. A failed call is an output for the model, not an error of the caller.
//!
//! Templates, names of tools and texts of results are pure functions; only `session` and `server_task` do I/O. The processes are
//! those of [`caipe_bridge::process`].
//!
//! # The end of child processes
//!
//! A child leads its own process group. It is stopped by closing its stdin, then `SIGTERM`, then `SIGKILL`, the latter two
//! to the whole group, which includes the children of a launcher such as `npx`. If the supervisor itself is killed
//! with `SIGKILL`, the pipes close, and the protocol obliges a child to exit at the end of its stdin
//! (specification, "stdio: shutdown"); in a container it ends with the container in any case.

mod call;
mod catalog;
mod connection_error;
mod credential_check;
mod credentials;
mod environment;
mod error;
mod server_spec;
mod server_task;
mod session;
mod template;
mod tolerant_transport;
mod tool_class;
mod tool_list;
mod tool_output;
mod toolbox;

pub use catalog::{ServerPhase, ServerStatus, ToolsView};
pub use error::SpecError;
pub use server_spec::{ServerSpec, Transport};
pub use template::{TemplateError, fill};
pub(crate) use tool_class::is_verb;
pub use toolbox::Toolbox;
