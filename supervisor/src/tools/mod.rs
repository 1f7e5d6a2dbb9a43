//! The sources of tools of an agent, each a [`ToolSource`]: the [built-in ones](crate::builtin), those that call third-party A2A
//! agents ([`A2aTools`]), the shell ([`ShellTools`]), web pages ([`WebTools`]), what the agent knows of itself ([`Introspection`]), other
//! models ([`ModelTools`]), tasks ([`TaskTools`]), facts about people ([`MemoryTools`]), files on a volume ([`Volume`]), and those of the MCP servers.

mod a2a;
mod client_calls;
mod introspection;
mod memory;
mod models;
#[cfg(target_os = "linux")]
mod shell;
#[cfg(not(target_os = "linux"))]
#[path = "shell_elsewhere.rs"]
mod shell;
mod shell_settings;
mod source;
mod tasks;
mod volume;
mod web;

pub use a2a::{A2aTools, A2aToolsError, Caller, Progress, RunStatus};
pub use client_calls::{ClientCalls, ClientSources};
pub use introspection::{AgentFacts, Introspection};
pub use memory::{MemoryLimits, MemoryTools};
pub use models::{AllowedModel, ModelTools};
pub use shell::{ShellTools, Unconfined, shell_process};
pub use shell_settings::{ShellSettings, ShellVolume};
pub use source::{ToolSource, ToolSources};
pub use tasks::{ListedTask, ReadTask, TaskReader, TaskReaderSlot, TaskTools};
pub use volume::Volume;
pub use web::{WebSettings, WebTools, WebToolsError};
