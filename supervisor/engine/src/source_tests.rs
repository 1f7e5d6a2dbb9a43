use serde_json::json;

use super::*;

fn after(calls: &[(Value, &str)]) -> Vec<Source> {
    let mut sources = Vec::new();
    for (arguments, content) in calls {
        collect(&mut sources, arguments.as_object().unwrap(), content);
    }
    sources
}

const NEWER: &str = include_str!("../../../fixtures/wire/rag_search_response.json");
const OLDER: &str = include_str!("../../../fixtures/wire/rag_search_response_older.json");

#[test]
fn both_shapes_of_a_search_result_are_read() {
    for (content, title) in [(NEWER, "Autoscaling and GitOps"), (OLDER, "")] {
        let sources = after(&[(json!({"query": "argo"}), content)]);
        let ids: Vec<&str> = sources.iter().map(|source| source.document_id.as_str()).collect();
        assert_eq!(ids, ["doc-001", "doc-002", "doc-003"]);
        assert_eq!(sources[1].title, title);
    }
    let wrapped = json!({"result": serde_json::from_str::<Value>(NEWER).unwrap()}).to_string();
    assert_eq!(after(&[(json!({}), &wrapped)]).len(), 3);
    assert_eq!(after(&[(json!({}), "no JSON")]), []);
}

#[test]
fn an_answer_lists_the_documents_that_were_read_or_else_those_that_were_found() {
    let found = after(&[(json!({"query": "argo"}), OLDER)]);
    assert_eq!(list(&found, "x").as_deref(), Some("\n\n**Sources**\n\n1. doc-001\n2. doc-002\n3. doc-003"));
    let read = after(&[
        (json!({"query": "argo"}), NEWER),
        (json!({"document_id": "doc-002"}), "the text"),
        (json!({"document_id": "doc-002"}), "the text"),
        (json!({"document_id": "https://docs.example.com/a"}), r#"{"title": "A [b]"}"#),
    ]);
    assert_eq!(
        list(&read, "x").as_deref(),
        Some(
            "\n\n**Sources**\n\n1. Autoscaling and GitOps (`doc-002`)\n2. [A b](https://docs.example.com/a)"
        )
    );
}

#[test]
fn sources_are_shown_once() {
    let sources = after(&[(json!({"query": "argo"}), OLDER)]);
    for answer in ["It is so.\n\n## Sources\n- doc-001", "It is so.\n**sources:**\n1. doc-001"] {
        assert_eq!(list(&sources, answer), None, "{answer}");
    }
    assert_eq!(list(&[], "x"), None);
}

#[test]
fn a_url_that_would_break_the_link_is_not_one() {
    let entry =
        |url: &str| json!({"results": [{"document_id": "d", "metadata": {"source": url}}]}).to_string();
    for (url, expected) in [
        ("https://example.com/a", "1. [d](https://example.com/a)"),
        ("javascript:alert(1)", "1. d"),
        ("https://example.com/a) [x](https://evil.example.com", "1. d"),
    ] {
        let listed = list(&after(&[(json!({}), &entry(url))]), "").unwrap();
        assert_eq!(listed.lines().last(), Some(expected), "{url}");
    }
}
