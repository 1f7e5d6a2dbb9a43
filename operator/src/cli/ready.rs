//! `ready`: waits until an operator is ready. For `helm test`, whose pod has no shell.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::time::{Instant, sleep};

const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
pub(super) struct Ready {
    /// The readiness endpoint of the operator.
    #[arg(long, default_value = "http://127.0.0.1:8080/readyz")]
    url: Url,
    /// Timeout in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,
}

impl Ready {
    /// Succeeds as soon as the operator is ready; fails with the last error at the timeout.
    pub(super) fn run(&self) -> anyhow::Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.wait())
    }

    async fn wait(&self) -> anyhow::Result<ExitCode> {
        let client = Client::builder().no_proxy().redirect(Policy::none()).timeout(REQUEST_TIMEOUT);
        let client = client.build().context("failed to make an HTTP client")?;
        let deadline = Instant::now() + Duration::from_secs(self.timeout);
        loop {
            match poll(&client, &self.url).await {
                Ok(()) => return super::print("ready\n"),
                Err(error) if Instant::now() >= deadline => {
                    return Err(error.context(format!("not ready within {} s", self.timeout)));
                }
                Err(_) => sleep(POLL_INTERVAL).await,
            }
        }
    }
}

async fn poll(client: &Client, url: &Url) -> anyhow::Result<()> {
    let answer = client.get(url.clone()).send().await.context("failed to connect to the operator")?;
    let status = answer.status();
    ensure!(status.is_success(), "it answered {status}");
    Ok(())
}

#[cfg(test)]
#[path = "ready_tests.rs"]
mod tests;
