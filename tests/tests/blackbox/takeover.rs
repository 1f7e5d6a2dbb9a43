//! Two processes and one data directory: the second waits for the end of the first, as pods on one volume do.

use std::process::Stdio;

use anyhow::{Context, Result};
use caipe_tests::scenario::Scenario;
use caipe_tests::stream::TIMEOUT;
use caipe_tests::supervisor::Setup;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr};

/// A process on the data directory of the setup.
pub(super) const SERVE: [&str; 7] =
    ["serve", "--listen", "127.0.0.1:0", "--data-dir", "data", "-f", "supervisor.yaml"];

/// Another process of the setup, and what it says.
pub(super) fn another(setup: &Setup, arguments: &[&str]) -> Result<(Child, Lines<BufReader<ChildStderr>>)> {
    let mut child = setup.command(arguments)?.stderr(Stdio::piped()).kill_on_drop(true).spawn()?;
    let log = BufReader::new(child.stderr.take().context("it has no error stream")?).lines();
    Ok((child, log))
}

/// Tells a process to stop; how it ended.
pub(super) async fn stop(child: &mut Child) -> Result<Option<i32>> {
    let id = child.id().and_then(|id| rustix::process::Pid::from_raw(i32::try_from(id).ok()?));
    rustix::process::kill_process(id.context("it has ended")?, rustix::process::Signal::TERM)?;
    Ok(tokio::time::timeout(TIMEOUT, child.wait()).await.context("it did not stop")??.code())
}

pub(super) async fn says(log: &mut Lines<BufReader<ChildStderr>>, words: &str) -> Result<()> {
    let until = async {
        while let Some(line) = log.next_line().await? {
            if line.contains(words) {
                return Ok(());
            }
        }
        anyhow::bail!("it ended before it logged {words:?}")
    };
    tokio::time::timeout(TIMEOUT, until).await.with_context(|| format!("it never logged {words:?}"))?
}

#[tokio::test]
async fn the_next_process_begins_when_the_one_before_has_ended() -> Result<()> {
    let setup = Scenario::new().turn(json!({}), json!({"text": "yes"})).setup()?;
    let first = setup.start().await?;
    let (mut child, mut log) = another(&setup, &SERVE)?;
    says(&mut log, "another process uses the store").await?;
    assert_eq!(first.ask("are you there?").await?.result()?, "yes", "the first is not disturbed");
    assert_eq!(first.stop().await?, Some(0));
    says(&mut log, "listening").await?;
    Ok(child.kill().await?)
}

#[tokio::test]
async fn one_that_waits_can_be_stopped() -> Result<()> {
    let setup = Scenario::new().turn(json!({}), json!({"text": "yes"})).setup()?;
    let _first = setup.start().await?;
    let (mut child, mut log) = another(&setup, &SERVE)?;
    says(&mut log, "another process uses the store").await?;
    assert_eq!(stop(&mut child).await?, Some(1));
    says(&mut log, "stopped before another process released").await
}
