//! Messages among whatever else a child prints.
//!
//! Many servers print a banner or a log line on stdout. The client library survives text that is not JSON, but answers every JSON line
//! that is no message (a structured log, say) with an error, which such a server may answer in turn. Hence the
//! lines that are no messages are taken out here, and kept for the status message.

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::lines::{Line, next_line};
use super::redact::Redactor;
use super::stderr::Tail;

/// The largest message taken; the client library's own limit.
const MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Bytes read at once.
const READ_BYTES: usize = 16 * 1024;

/// Copies the messages of `from` to `to` until either ends.
pub(super) async fn filter(
    server: String,
    from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    redactor: Redactor,
    noise: Tail,
) {
    let mut reader = BufReader::with_capacity(READ_BYTES, from);
    let mut buffer = Vec::new();
    while let Some(line) = next_line(&mut reader, &mut buffer, MESSAGE_BYTES).await {
        if line == Line::Cut {
            tracing::warn!(
                server,
                limit = MESSAGE_BYTES,
                "a message of the tool server is dropped: it is too large"
            );
            continue;
        }
        let Some(message) = message(&buffer) else {
            note_noise(&server, &buffer, &redactor, &noise);
            continue;
        };
        let written = async {
            to.write_all(message).await?;
            to.write_all(b"\n").await
        };
        if written.await.is_err() {
            return;
        }
        // One large answer shall not cost its memory for ever.
        buffer.clear();
        buffer.shrink_to(READ_BYTES);
    }
}

/// The message in a line: the line itself, or what follows a text that the server printed without ending its line.
fn message(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii();
    let names_protocol = |bytes: &[u8]| bytes.windows(9).any(|window| window == b"\"jsonrpc\"");
    if line.first() == Some(&b'{') {
        return names_protocol(line).then_some(line);
    }
    let start = line.windows(10).position(|window| window == b"{\"jsonrpc\"")?;
    line.get(start..)
}

fn note_noise(server: &str, line: &[u8], redactor: &Redactor, noise: &Tail) {
    let shown = String::from_utf8_lossy(line.get(..line.len().min(2_000)).unwrap_or_default());
    let shown = redactor.redact(shown.trim().to_owned());
    if !shown.is_empty() {
        tracing::debug!(server, line = shown, "tool server stdout that is no message");
        noise.push(&shown);
    }
}

#[cfg(test)]
mod tests {
    use super::{filter, message};
    use crate::mcp::redact::Redactor;
    use crate::mcp::stderr::Tail;

    #[test]
    fn tells_messages_from_noise() {
        let ping = br#"{"jsonrpc":"2.0","method":"ping","id":1}"#;
        assert_eq!(message(ping), Some(&ping[..]));
        assert_eq!(message(&[b"Ready> ", &ping[..]].concat()), Some(&ping[..]));
        assert_eq!(
            message(br#"{ "id": 1, "jsonrpc": "2.0" }"#),
            Some(&br#"{ "id": 1, "jsonrpc": "2.0" }"#[..])
        );
        for noise in [&b"Server running"[..], br#"{"level":"info"}"#, b"[1,2]", b"", b"42", b"\xff\xfe"] {
            assert_eq!(message(noise), None);
        }
    }

    #[tokio::test]
    async fn copies_only_messages_and_keeps_the_noise() {
        let input =
            b"banner with s3cr3t-value\n{\"jsonrpc\":\"2.0\"}\n\n{\"log\":1}\n{\"jsonrpc\":\"2.0\",\"id\":1}";
        let mut output = Vec::new();
        let noise = Tail::default();
        let redactor = Redactor::new(&["s3cr3t-value".to_owned()]);
        filter("x".to_owned(), &input[..], &mut output, redactor, noise.clone()).await;
        assert_eq!(output, b"{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"2.0\",\"id\":1}\n");
        assert_eq!(noise.text().unwrap(), "banner with [redacted] | {\"log\":1}");
    }
}
