//! The text of a response.

use encoding_rs::{Encoding, UTF_8};
use url::Url;

use super::fetch::Fetched;

/// How far into HTML the encoding is looked for.
const PROLOGUE_BYTES: usize = 1024;

/// What the model reads of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) url: Url,
    pub(super) title: Option<String>,
    pub(super) date: Option<String>,
    pub(super) text: String,
}

/// Decodes a response, and turns HTML into Markdown unless it is wanted raw.
pub(super) fn read(fetched: &Fetched, raw: bool) -> Result<Page, String> {
    let is_html =
        ["text/html", "application/xhtml+xml"].iter().any(|html| fetched.content_type.starts_with(html));
    let text = decode(&fetched.body, &fetched.content_type, is_html);
    if text.contains('\0') {
        return Err("it is no text".to_owned());
    }
    let url = fetched.url.clone();
    let modified = fetched.last_modified.clone();
    if !is_html {
        return Ok(Page { url, title: None, date: modified, text });
    }
    let page = caipe_kb::read_web_page(&text, &url);
    let date = page.date.or(modified);
    Ok(Page { url, title: page.title, date, text: if raw { text } else { page.text } })
}

/// The text in the encoding that its bytes, its header or its first element name.
fn decode(body: &[u8], content_type: &str, is_html: bool) -> String {
    let named = label(content_type).or_else(|| is_html.then(|| prologue_label(body)).flatten());
    let encoding = named.and_then(|label| Encoding::for_label(label.as_bytes())).unwrap_or(UTF_8);
    encoding.decode(body).0.into_owned()
}

fn prologue_label(body: &[u8]) -> Option<String> {
    let prologue = String::from_utf8_lossy(body.get(..PROLOGUE_BYTES).unwrap_or(body)).to_lowercase();
    prologue.split("<meta").skip(1).find_map(|meta| label(meta.split('>').next()?))
}

/// The value of `charset`.
fn label(text: &str) -> Option<String> {
    let (_, value) = text.split_once("charset=")?;
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c)).unwrap_or(value.len());
    value.get(..end).filter(|label| !label.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decodes_as_header_or_page_say() {
        for (body, content_type, is_html, expected) in [
            (&b"\xc3\xa4"[..], "text/plain", false, "ä"),
            (b"\xe4", "text/plain; charset=ISO-8859-1", false, "ä"),
            (b"\xe4", "text/plain; charset=\"latin1\"; x=y", false, "ä"),
            (b"<meta charset='windows-1252'>\xe4", "text/html", true, "<meta charset='windows-1252'>ä"),
            (b"\xff\xfea\0", "text/plain", false, "a"),
            (b"\xe4", "text/plain; charset=nonsense", false, "\u{fffd}"),
        ] {
            assert_eq!(decode(body, content_type, is_html), expected, "{content_type}");
        }
    }
}
