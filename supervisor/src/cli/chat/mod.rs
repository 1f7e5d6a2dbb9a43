//! wip
use super::args::Chat;
use std::process::ExitCode;
pub(super) async fn run(_args: Chat) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
