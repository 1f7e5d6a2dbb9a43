//! Separates the messages of a child from other lines on its stdout.
//!
//! Many servers print a banner or log lines on stdout. The client library ignores text that is not JSON, but answers every JSON line
//! that is not a message (such as a structured log) with an error, which such a server may answer in turn. So the filter removes
//! these lines, and stores the last ones for the status message.

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::MAX_MESSAGE_BYTES;
use super::lines::{Line, next_line};
use super::stderr::Tail;
use crate::redact::Redactor;

/// The code of the JSON-RPC error that replaces an answer above [`MAX_MESSAGE_BYTES`].
pub const TOO_LARGE: i32 = -32010;
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
    while let Some(line) = next_line(&mut reader, &mut buffer, MAX_MESSAGE_BYTES).await {
        let error;
        let message = match &line {
            Line::Whole => message(&buffer),
            Line::Cut(end) => {
                tracing::warn!(server, limit = MAX_MESSAGE_BYTES, "dropped a message that is too large");
                error = answered_request(&buffer, end).map(|id| too_large(&id));
                error.as_deref().map(str::as_bytes)
            }
        };
        let Some(message) = message else {
            if line == Line::Whole {
                note_noise(&server, &buffer, &redactor, &noise);
            }
            continue;
        };
        let written = async {
            to.write_all(message).await?;
            to.write_all(b"\n").await
        };
        if written.await.is_err() {
            return;
        }
        // Frees the memory of a large answer.
        buffer.clear();
        buffer.shrink_to(READ_BYTES);
    }
}

/// The message in a line: the line itself, or the part after text that the server printed without a line end.
fn message(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii();
    let names_protocol = |bytes: &[u8]| bytes.windows(9).any(|window| window == b"\"jsonrpc\"");
    if line.first() == Some(&b'{') {
        return names_protocol(line).then_some(line);
    }
    let start = line.windows(10).position(|window| window == b"{\"jsonrpc\"")?;
    line.get(start..)
}

/// The id of the request that a message answers, from its beginning and its end: servers write it before or after
/// the result. `None` if the message is not an answer.
fn answered_request(start: &[u8], end: &[u8]) -> Option<Value> {
    let id = |text: Vec<u8>| serde_json::from_slice::<Map<String, Value>>(&text).ok()?.remove("id");
    let start = start.get(..start.len().min(256)).unwrap_or_default();
    let result = start.windows(8).position(|window| window == b"\"result\"")?;
    let before = start.get(..result)?.trim_ascii_end();
    let members = before.strip_suffix(b",").unwrap_or(before);
    id([members, b"}"].concat()).or_else(|| {
        let candidates = end.windows(4).enumerate().filter(|(_, window)| window == b"\"id\"");
        let mut rest = candidates.filter_map(|(index, _)| end.get(index..));
        rest.find_map(|rest| id([b"{", rest].concat()))
    })
}

fn too_large(id: &Value) -> String {
    let message = format!("the answer is larger than {} MiB", MAX_MESSAGE_BYTES / 1024 / 1024);
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": TOO_LARGE, "message": message}}).to_string()
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
    use super::{MAX_MESSAGE_BYTES, TOO_LARGE, answered_request, filter, message};
    use crate::process::stderr::Tail;
    use crate::redact::Redactor;
    use serde_json::{Value, json};

    #[test]
    fn separates_messages_from_noise() {
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

    #[test]
    fn finds_the_id_of_the_request_in_an_oversized_message() {
        for (start, end, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"result":{"con"#, r#"x"}]}}"#, Some(json!(7))),
            (r#"{"id": "a", "jsonrpc": "2.0", "result": {"con"#, r#""id":9}]}}"#, Some(json!("a"))),
            (r#"{"result":{"content":[{"id":1,"#, r#""}]},"jsonrpc":"2.0","id":7}"#, Some(json!(7))),
            (r#"{"result":{"content":[{"id":1,"#, r#""}]},"id":"b","jsonrpc":"2.0"}"#, Some(json!("b"))),
            (r#"{"result":{"content":[{"#, r#"\"id\":1}","id":2}]},"jsonrpc":"2.0"}"#, None),
            (r#"{"method":"notifications/message","params":{"#, r#""},"id":7}"#, None),
            (r#"{"jsonrpc":"2.0","method":"n","params":{"result":1,"#, r"}}", None),
        ] {
            assert_eq!(answered_request(start.as_bytes(), end.as_bytes()), expected, "{start} … {end}");
        }
    }

    #[tokio::test]
    async fn replaces_an_oversized_answer_with_an_error() {
        let input = format!(
            "{{\"result\":\"{}\",\"jsonrpc\":\"2.0\",\"id\":3}}\n{{\"jsonrpc\":\"2.0\"}}\n",
            "x".repeat(MAX_MESSAGE_BYTES)
        );
        let mut output = Vec::new();
        filter("x".to_owned(), input.as_bytes(), &mut output, Redactor::default(), Tail::default()).await;
        let lines: Vec<Value> =
            output.split(|byte| *byte == b'\n').flat_map(serde_json::from_slice).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!((&lines[0]["id"], &lines[0]["error"]["code"]), (&json!(3), &json!(TOO_LARGE)));
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
