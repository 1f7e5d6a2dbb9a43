//! Lines of bounded length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The whole line is in the buffer, without its end.
    Whole,
    /// The line was too long: the buffer holds its beginning, and this its last bytes.
    Cut(Vec<u8>),
}

/// How many bytes of the end of a line that is too long are kept.
const END_BYTES: usize = 256;

/// Reads the next line into `buffer`, keeping at most `limit` bytes of it. `None` at the end of input, or where it breaks.
pub(crate) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    buffer: &mut Vec<u8>,
    limit: usize,
) -> Option<Line> {
    buffer.clear();
    let (mut end, mut any) = (None, false);
    loop {
        let available = reader.fill_buf().await.ok()?;
        if available.is_empty() {
            return any.then(|| end.map_or(Line::Whole, Line::Cut));
        }
        any = true;
        let newline = available.iter().position(|byte| *byte == b'\n');
        let content = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
        let room = limit.saturating_sub(buffer.len());
        buffer.extend(content.iter().take(room));
        if content.len() > room {
            let end = end.get_or_insert_with(Vec::new);
            end.extend_from_slice(content.get(content.len().saturating_sub(END_BYTES)..).unwrap_or_default());
            end.drain(..end.len().saturating_sub(END_BYTES));
        }
        let consumed = content.len() + usize::from(newline.is_some());
        reader.consume(consumed);
        if newline.is_some() {
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
            return Some(end.map_or(Line::Whole, Line::Cut));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, next_line};
    use tokio::io::BufReader;

    #[tokio::test]
    async fn keeps_lines_within_the_limit() {
        let input = b"short\r\n\nfar too long for this\nlast";
        for capacity in [1, 3, 64] {
            let mut reader = BufReader::with_capacity(capacity, &input[..]);
            let mut buffer = Vec::new();
            let mut lines = Vec::new();
            while let Some(line) = next_line(&mut reader, &mut buffer, 8).await {
                lines.push((String::from_utf8(buffer.clone()).unwrap(), line));
            }
            assert!(matches!(&lines[2].1, Line::Cut(end) if end.ends_with(b"this")), "{lines:?}");
            lines[2].1 = Line::Whole;
            let expected = ["short", "", "far too ", "last"].map(|text| (text.to_owned(), Line::Whole));
            assert_eq!(lines, expected, "{capacity}");
        }
    }
}
