//! The result of a tool as text for the model.

use caipe_bridge::redact::Redactor;
use caipe_engine::ToolOutput;
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The limit of one result; that of a run is usually lower.
const MAX_CHARS: usize = 200_000;
const TRUNCATED: &str = "\n[Output truncated]";

const UNKNOWN: &str = "[content of a kind that cannot be shown as text]";

/// A result as text: the texts of its parts, other parts described; the structured content as JSON where there is no text.
pub(super) fn from_result(result: CallToolResult, redactor: &Redactor) -> ToolOutput {
    let is_error = result.is_error == Some(true);
    let has_text = result.content.iter().any(|part| part.as_text().is_some_and(|text| !text.text.is_empty()));
    let mut parts: Vec<String> =
        result.content.into_iter().map(describe).filter(|part| !part.is_empty()).collect();
    if let (false, Some(structured)) = (has_text, result.structured_content) {
        parts.insert(0, structured.to_string());
    }
    let text = match (parts.is_empty(), is_error) {
        (true, true) => "The tool failed and did not say why.".to_owned(),
        (true, false) => "The tool finished and returned nothing.".to_owned(),
        (false, _) => parts.join("\n"),
    };
    ToolOutput { content: bounded(redactor.redact(text)), is_error, ..ToolOutput::default() }
}

/// The text, cut to [`MAX_CHARS`] characters.
pub(super) fn bounded(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_CHARS) {
        text.truncate(end);
        text.push_str(TRUNCATED);
    }
    text
}

fn describe(part: ContentBlock) -> String {
    match part {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => binary("image", Some(&image.mime_type), image.data.len()),
        ContentBlock::Audio(audio) => binary("audio", Some(&audio.mime_type), audio.data.len()),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let title = link.title.unwrap_or(link.name);
            let description = link.description.map(|text| format!(": {text}")).unwrap_or_default();
            format!("[link to resource {} ({title}){description}]", link.uri)
        }
        _ => UNKNOWN.to_owned(),
    }
}

fn resource(contents: ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            binary(&format!("resource {uri}"), mime_type.as_deref(), blob.len())
        }
        _ => UNKNOWN.to_owned(),
    }
}

fn binary(what: &str, mime_type: Option<&str>, base64_len: usize) -> String {
    let mime_type = mime_type.unwrap_or("unknown type");
    format!("[{what}, {mime_type}, about {} bytes; not shown as text]", base64_len / 4 * 3)
}

#[cfg(test)]
#[path = "tool_output_tests.rs"]
mod tests;
