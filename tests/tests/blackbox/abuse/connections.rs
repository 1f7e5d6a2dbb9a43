//! Connections that do nothing, next to nothing, or break.

use std::time::Duration;

use anyhow::{Result, ensure};
use caipe_tests::process;
use caipe_tests::raw_http::RawConnection;

use super::{greeter, is_well, memory, open_files, until_open_files};

/// Connections that are opened at most.
const MOST: u64 = 10_000;

/// Files that this process needs for other tests.
const OTHERS: u64 = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_idle_connections_keep_nobody_out() -> Result<()> {
    let supervisor = greeter().await?;
    is_well(&supervisor).await?;
    let (before, files) = (memory(&supervisor)?, open_files(&supervisor)?);
    let allowed = process::allow_files(MOST + OTHERS).saturating_sub(OTHERS).min(MOST);
    if allowed < MOST {
        println!("only {allowed} connections: this process may open no more files");
    }
    let mut idle = Vec::new();
    for _ in 0..allowed {
        idle.push(RawConnection::open(&supervisor).await?);
    }
    is_well(&supervisor).await?;
    let grown = memory(&supervisor)?.saturating_sub(before);
    let each = grown / allowed.max(1);
    ensure!(each <= 32, "{allowed} idle connections take {grown} KiB");
    drop(idle);
    until_open_files(&supervisor, files + 50).await?;
    is_well(&supervisor).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_comes_byte_by_byte_is_given_up_and_delays_nobody() -> Result<()> {
    let supervisor = greeter().await?;
    let mut slow = Vec::new();
    for _ in 0..100 {
        let mut raw = RawConnection::open(&supervisor).await?;
        let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n{";
        raw.send(head.as_bytes()).await?;
        slow.push(tokio::spawn(async move { raw.drip(Duration::from_secs(1)).await }));
    }
    while slow.iter().any(|drip| !drip.is_finished()) {
        is_well(&supervisor).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    for drip in slow {
        let reply = drip.await??;
        ensure!(reply.status == 408, "{reply:?}");
        ensure!(reply.json()?["error"]["message"].to_string().contains("30 s"), "{reply:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_hangs_up_within_a_body_leaves_nothing_behind() -> Result<()> {
    let supervisor = greeter().await?;
    is_well(&supervisor).await?;
    let files = open_files(&supervisor)?;
    for _ in 0..200 {
        let mut raw = RawConnection::open(&supervisor).await?;
        let half = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n{\"jso";
        raw.send(half.as_bytes()).await?;
    }
    until_open_files(&supervisor, files + 20).await?;
    is_well(&supervisor).await
}
