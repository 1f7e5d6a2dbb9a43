use super::*;
use crate::search::tests::knowledge_base;

fn answer(base: &KnowledgeBase, tool: &str, arguments: &Value) -> CallToolResult {
    call(base, tool, arguments.as_object().cloned().unwrap()).unwrap()
}

fn text(result: &CallToolResult) -> String {
    result.content[0].as_text().unwrap().text.clone()
}

#[test]
fn results_have_the_shape_of_upstream() {
    let long = format!("# Guide\n\nAbout kafka. {}", "word ".repeat(200));
    let (_dir, base) = knowledge_base(&[("docs/a.md", "# Kafka\n\nShort."), ("docs/b.md", &long)]);
    let result = answer(&base, "search", &json!({"query": "kafka", "limit": 3, "thought": "why not"}));
    let found = result.structured_content.clone().unwrap();
    assert_eq!(found, serde_json::from_str::<Value>(&text(&result)).unwrap());
    assert_eq!(found["semantic_results"], json!([]));
    let first = &found["keyword_results"][0];
    assert_eq!(first["text_content"], "# Kafka\n\nShort.");
    assert_eq!(
        (&first["metadata"]["document_id"], &first["metadata"]["datasource_id"]),
        (&json!("docs/a.md"), &json!("docs"))
    );
    assert_eq!(first["metadata"]["title"], "Kafka");
    assert!(first["score"].as_f64().unwrap() > 0.0);
    let second = found["keyword_results"][1]["text_content"].as_str().unwrap();
    assert!(
        second.ends_with(CONTENT_TRUNCATED) && second.chars().count() <= 500 + CONTENT_TRUNCATED.len(),
        "{second}"
    );
    assert_eq!(
        text(&answer(&base, "fetch_document", &json!({"document_id": "docs/a.md", "thought": ""}))),
        "# Kafka\n\nShort."
    );
    let listed = answer(&base, "list_datasources_and_entity_types", &json!({"thought": "x"}))
        .structured_content
        .unwrap();
    assert_eq!(
        (&listed["datasources"][0]["datasource_id"], &listed["filter_keys"]),
        (&json!("docs"), &json!(["datasource_id"]))
    );
}

#[test]
fn a_model_can_correct_its_mistakes() {
    let (_dir, base) = knowledge_base(&[("docs/a.md", "kafka")]);
    for (tool, arguments, expected) in [
        ("search", json!({}), "missing field `query`"),
        ("search", json!({"query": "?"}), "The query has no words to search for."),
        ("search", json!({"query": "kafka", "filters": {"team": "a"}}), "The only filter is datasource_id"),
        ("search", json!({"query": "kafka", "limit": "many"}), "invalid type"),
        (
            "fetch_document",
            json!({"document_id": "nope"}),
            "There is no document \"nope\"; use a document_id",
        ),
    ] {
        let result = answer(&base, tool, &arguments);
        let words = text(&result);
        assert!(
            result.is_error == Some(true) && words.to_lowercase().contains(&expected.to_lowercase()),
            "{arguments}: {words}"
        );
    }
    for (arguments, count) in [
        (json!({"query": "kafka", "filters": null, "limit": null}), 1),
        (json!({"query": "kafka", "filters": {"datasource_id": "docs"}, "limit": 1_000_000}), 1),
        (json!({"query": "kafka", "filters": {"datasource_id": "other"}, "limit": 0}), 0),
    ] {
        let found = answer(&base, "search", &arguments).structured_content.unwrap();
        assert_eq!(found["keyword_results"].as_array().unwrap().len(), count, "{arguments}");
    }
    assert!(call(&base, "drop_table", Map::new()).is_err());
}

#[test]
fn every_tool_is_read_only() {
    for tool in tools() {
        let annotations = tool.annotations.clone().unwrap();
        assert_eq!(
            (annotations.read_only_hint, annotations.destructive_hint, annotations.idempotent_hint),
            (Some(true), Some(false), Some(true))
        );
        assert!(tool.input_schema["properties"]["thought"].is_object(), "{}", tool.name);
    }
}
