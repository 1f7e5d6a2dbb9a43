//! Lines of bounded length.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The whole line is in the buffer, without its end.
    Whole,
    /// The buffer holds the beginning of a line that was too long; the rest of it is gone.
    Cut,
}

/// Reads the next line into `buffer`, keeping at most `limit` bytes of it. `None` at the end of input, or where it breaks.
pub(super) async fn next_line(
    reader: &mut (impl AsyncBufRead + Unpin),
    buffer: &mut Vec<u8>,
    limit: usize,
) -> Option<Line> {
    buffer.clear();
    let (mut cut, mut any) = (false, false);
    loop {
        let available = reader.fill_buf().await.ok()?;
        if available.is_empty() {
            return any.then_some(if cut { Line::Cut } else { Line::Whole });
        }
        any = true;
        let newline = available.iter().position(|byte| *byte == b'\n');
        let content = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
        let room = limit.saturating_sub(buffer.len());
        buffer.extend(content.iter().take(room));
        cut |= content.len() > room;
        let consumed = content.len() + usize::from(newline.is_some());
        reader.consume(consumed);
        if newline.is_some() {
            if buffer.last() == Some(&b'\r') {
                buffer.pop();
            }
            return Some(if cut { Line::Cut } else { Line::Whole });
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
            let expected =
                [("short", Line::Whole), ("", Line::Whole), ("far too ", Line::Cut), ("last", Line::Whole)];
            assert_eq!(lines, expected.map(|(text, line)| (text.to_owned(), line)), "{capacity}");
        }
    }
}
