//! The sources of tools of an agent, each a [`ToolSource`]: the [built-in ones](crate::builtin), those that call third-party A2A
//! agents ([`A2aTools`]), and those of the MCP servers.

mod a2a;
mod source;

pub use a2a::{A2aTools, A2aToolsError, Caller, Progress};
pub use source::{ToolSource, ToolSources};
