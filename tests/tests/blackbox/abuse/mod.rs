//! Clients that mean ill, or do not know better: each is answered or dropped, and nobody else notices.

mod connections;
mod methods;
mod pages;
mod readers;
mod request_heads;
mod rest;
mod unknown;

use anyhow::{Context, Result, ensure};
use caipe_tests::process;
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::Supervisor;

/// A supervisor that says "Hello." to everything.
async fn greeter() -> Result<Supervisor> {
    Scenario::new().answers("*", "Hello.").setup()?.start().await
}

/// It answers as if nothing had been.
async fn is_well(supervisor: &Supervisor) -> Result<()> {
    ensure!(supervisor.ask("hi").await?.result()? == "Hello.");
    Ok(())
}

/// Its resident memory, in KiB.
fn memory(supervisor: &Supervisor) -> Result<u64> {
    process::resident_kib(supervisor.pid().context("it has ended")?)
}

/// Waits until it has at most so many files open.
async fn until_open_files(supervisor: &Supervisor, most: usize) -> Result<()> {
    let pid = supervisor.pid().context("it has ended")?;
    let few = async || Ok(process::open_files(pid)? <= most);
    supervisor.until("it closes what nobody uses", few).await
}

/// The files that it has open.
fn open_files(supervisor: &Supervisor) -> Result<usize> {
    process::open_files(supervisor.pid().context("it has ended")?)
}
