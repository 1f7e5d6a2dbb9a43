//! Heads and framing that no client should send.

use anyhow::{Result, ensure};
use caipe_tests::raw_http::{self, RawConnection};
use serde_json::json;

use super::{greeter, is_well, memory};

/// A mebibyte.
const MIB: usize = 1 << 20;

#[tokio::test(flavor = "multi_thread")]
async fn a_head_of_a_megabyte_is_refused_and_not_buffered() -> Result<()> {
    let supervisor = greeter().await?;
    is_well(&supervisor).await?;
    let before = memory(&supervisor)?;
    for _ in 0..50 {
        let mut raw = RawConnection::open(&supervisor).await?;
        let long = format!("GET / HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "x".repeat(MIB));
        // The server may close before it has read everything.
        drop(raw.send(long.as_bytes()).await);
        let rest = raw.rest().await;
        let answer = String::from_utf8_lossy(&rest);
        ensure!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
    let grown = memory(&supervisor)?.saturating_sub(before);
    ensure!(grown < 20 * 1024, "fifty heads of a megabyte left {grown} KiB behind");
    is_well(&supervisor).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_headers_are_refused() -> Result<()> {
    let supervisor = greeter().await?;
    let mut raw = RawConnection::open(&supervisor).await?;
    let lines: Vec<String> = (0..1000).map(|number| format!("x-{number}: 1\r\n")).collect();
    raw.send(&raw_http::post("{}", &lines.concat())).await?;
    ensure!(raw.reply().await?.status == 431);
    is_well(&supervisor).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_http_1_ends_at_once() -> Result<()> {
    let supervisor = greeter().await?;
    let http_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00";
    let tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n";
    for bytes in [&http_2[..], &tls[..], &b"\0\0\0\0\r\n\r\n"[..], &b"GET /\r\n\r\n"[..]] {
        let mut raw = RawConnection::open(&supervisor).await?;
        raw.send(bytes).await?;
        let rest = raw.rest().await;
        let answer = String::from_utf8_lossy(&rest);
        ensure!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{bytes:?}: {answer}");
    }
    is_well(&supervisor).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_lengths_or_a_length_and_chunks_are_refused() -> Result<()> {
    let supervisor = greeter().await?;
    for lines in ["content-length: 1\r\n", "transfer-encoding: gzip\r\n"] {
        let mut raw = RawConnection::open(&supervisor).await?;
        raw.send(&raw_http::post("{}", lines)).await?;
        ensure!(raw.reply().await?.status == 400, "{lines}");
    }
    // A length beside chunks says nothing (RFC 9112, 6.3); what follows is not taken for another request.
    let mut raw = RawConnection::open(&supervisor).await?;
    raw.send(&raw_http::post(
        "0\r\n\r\nGET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
        "transfer-encoding: chunked\r\n",
    ))
    .await?;
    let answer = String::from_utf8_lossy(&raw.rest().await).into_owned();
    ensure!(!answer.contains(r#""status":"ok""#), "a request was smuggled: {answer}");
    is_well(&supervisor).await
}

#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_their_order() -> Result<()> {
    let supervisor = greeter().await?;
    let mut raw = RawConnection::open(&supervisor).await?;
    let get = |id: u32| {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "tasks/get", "params": {"id": "none"}});
        raw_http::post(&body.to_string(), "")
    };
    raw.send(&(1..=50).flat_map(get).collect::<Vec<_>>()).await?;
    for id in 1..=50 {
        let reply = raw.reply().await?;
        ensure!(reply.status == 200 && reply.json()?["id"] == id, "{id}: {reply:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_above_the_limit_are_refused_without_being_buffered() -> Result<()> {
    let supervisor = greeter().await?;
    is_well(&supervisor).await?;
    let before = memory(&supervisor)?;
    let mut raw = RawConnection::open(&supervisor).await?;
    let head = "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    raw.send(head.as_bytes()).await?;
    let chunk = format!("{MIB:x}\r\n{}\r\n", "x".repeat(MIB));
    let sent = raw.send_until_refused(chunk.as_bytes(), 200 * MIB).await;
    ensure!(sent < 100 * MIB, "it has read {sent} bytes of a body that never ends");
    let grown = memory(&supervisor)?.saturating_sub(before);
    ensure!(grown < 60 * 1024, "it keeps {grown} KiB of what it refused");
    is_well(&supervisor).await
}
