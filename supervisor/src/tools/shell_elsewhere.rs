//! The tool `shell_exec` on systems without a sandbox for it: it is never offered.

use std::sync::Arc;

use async_trait::async_trait;
use caipe_engine::ToolOutput;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::{Caller, ShellSettings, ToolSource};
use crate::builtin::OfferedTool;

/// The reason why commands cannot be confined here.
#[derive(Debug, thiserror::Error)]
#[error("commands can be confined on Linux only; turn the shell off")]
pub struct Unconfined;

/// No process of a sandbox.
pub fn shell_process() -> Option<i32> {
    None
}

/// The tool that runs commands.
#[derive(Debug)]
pub struct ShellTools(std::convert::Infallible);

impl ShellTools {
    /// # Errors
    /// Always.
    pub fn new(_: ShellSettings) -> Result<Self, Unconfined> {
        Err(Unconfined)
    }
}

#[async_trait]
impl ToolSource for ShellTools {
    fn list(&self) -> Arc<[OfferedTool]> {
        match self.0 {}
    }

    async fn call(&self, _: &str, _: Map<String, Value>, _: Caller, _: CancellationToken) -> ToolOutput {
        match self.0 {}
    }
}
