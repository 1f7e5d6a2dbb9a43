use rmcp::model::CallToolResult;
use serde_json::{Value, json};

use super::{MAX_CHARS, bounded, from_result};
use caipe_bridge::redact::Redactor;

fn text_of(result: Value) -> (String, bool) {
    let result: CallToolResult = serde_json::from_value(result).unwrap();
    let output = from_result(result, &Redactor::new(&["s3cr3t-value".to_owned()]));
    (output.content, output.is_error)
}

#[test]
fn puts_results_into_words() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "data": "AAAAAAAA", "mimeType": "image/png"});
    let blob = json!({"type": "resource", "resource": {"uri": "file:///x", "blob": "AAAA"}});
    for (result, expected, is_error) in [
        (json!({"content": [text("a"), text("b")]}), "a\nb", false),
        (json!({"content": [text("no")], "isError": true}), "no", true),
        (json!({"content": [text("a")], "structuredContent": {"a": 1}}), "a", false),
        (json!({"content": [], "structuredContent": {"a": 1}}), "{\"a\":1}", false),
        (json!({"content": [text("")], "structuredContent": [1]}), "[1]", false),
        (
            json!({"content": [image], "structuredContent": {"a": 1}}),
            "{\"a\":1}\n[image, image/png, about 6 bytes; not shown as text]",
            false,
        ),
        (
            json!({"content": [blob]}),
            "[resource file:///x, unknown type, about 3 bytes; not shown as text]",
            false,
        ),
        (json!({"content": []}), "The tool finished and returned nothing.", false),
        (json!({"content": [], "isError": true}), "The tool failed and did not say why.", true),
        (json!({"content": [text("the key is s3cr3t-value")]}), "the key is [redacted]", false),
    ] {
        assert_eq!(text_of(result.clone()), (expected.to_owned(), is_error), "{result}");
    }
}

#[test]
fn cuts_by_characters() {
    let exact = "ä".repeat(MAX_CHARS);
    assert_eq!(bounded(exact.clone()), exact);
    assert_eq!(bounded(format!("{exact}ä")), format!("{exact}\n[Output truncated]"));
}
