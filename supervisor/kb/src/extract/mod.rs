//! Text and headings of a document.

mod html;
mod markdown;
mod pdf;

pub use html::{WebPage, read_web_page};
pub use pdf::{PDF_TEXT_COMMAND, PdfReader, pdf_text_main};

/// The form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Markdown,
    Html,
    Pdf,
    Plain,
}

impl Form {
    /// The form that a file name or the path of a URL shows.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (_, end) = name.rsplit_once('.')?;
        Some(match end.to_ascii_lowercase().as_str() {
            "md" | "markdown" | "mdx" => Self::Markdown,
            "html" | "htm" | "xhtml" => Self::Html,
            "pdf" => Self::Pdf,
            "txt" | "text" | "rst" | "adoc" | "asciidoc" => Self::Plain,
            _ => return None,
        })
    }

    /// The form that the media type of a response shows.
    pub(crate) fn of_media_type(media_type: &str) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        Some(match essence.as_str() {
            "text/markdown" => Self::Markdown,
            "text/html" | "application/xhtml+xml" => Self::Html,
            "application/pdf" => Self::Pdf,
            "text/plain" => Self::Plain,
            _ => return None,
        })
    }
}

/// The text of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Extracted {
    pub(crate) title: Option<String>,
    pub(crate) text: String,
    /// In the order of the text.
    pub(crate) headings: Vec<Heading>,
}

/// A heading in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Heading {
    /// The byte offset of its line.
    pub(crate) at: usize,
    /// The byte offset behind it.
    pub(crate) end: usize,
    /// 1 to 6.
    pub(crate) level: u8,
    pub(crate) text: String,
}

/// Extracts the text; an error says why there is none.
pub(crate) fn extract(form: Form, bytes: &[u8], pdf: &PdfReader) -> Result<Extracted, String> {
    match form {
        Form::Markdown => Ok(markdown::extract(decode(bytes)?)),
        Form::Html => Ok(html::extract(&String::from_utf8_lossy(bytes))),
        Form::Pdf => Ok(Extracted { text: pdf.text(bytes)?, ..Extracted::default() }),
        Form::Plain => Ok(Extracted { text: decode(bytes)?.to_owned(), ..Extracted::default() }),
    }
}

fn decode(bytes: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

#[cfg(test)]
#[path = "extract_tests.rs"]
mod tests;
