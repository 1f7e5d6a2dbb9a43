use std::collections::BTreeMap;

use caipe_engine::{Abilities, Budget, Spent};
use caipe_model::Scripted;
use tokio::sync::mpsc;

use super::*;
use crate::delegation::RunInfo;

fn tools(script: &str) -> ModelTools {
    let model = Arc::new(Scripted::from_yaml("other.yaml", script).unwrap());
    let broken = AllowedModel { name: "broken".to_owned(), model: Err("no key".to_owned()) };
    ModelTools::new("jira", vec![AllowedModel { name: "small".to_owned(), model: Ok(model) }, broken])
}

async fn call(tools: &ModelTools, tool: &str, arguments: Value, left: Option<u64>) -> ToolOutput {
    stoppable(tools, tool, arguments, left, CancellationToken::new()).await
}

async fn stoppable(
    tools: &ModelTools,
    tool: &str,
    arguments: Value,
    left: Option<u64>,
    cancel: CancellationToken,
) -> ToolOutput {
    let budget = Budget { tokens: left.map(|left| left + 100), prices: BTreeMap::new(), ..Budget::default() };
    let abilities = Abilities { budget, ..Abilities::default() };
    let spent = Spent { tokens: 100, ..Spent::default() };
    let status = Some(Arc::new(RunStatus { abilities, spent, tools: BTreeMap::new() }));
    let (call, run, files) = ("c".to_owned(), RunInfo::default(), Arc::default());
    let caller = Caller { call, run, files, progress: mpsc::channel(1).0, status };
    tools.call(tool, arguments.as_object().unwrap().clone(), caller, cancel).await
}

#[tokio::test]
async fn a_permitted_model_answers_and_its_tokens_are_reported() {
    let tools = tools(
        "turns: [{ when: { agent: jira question, system: Be brief. }, reply: { text: 'to {{ user }}' } }]",
    );
    let asked = json!({ "model": "small", "prompt": "why?", "system": "Be brief." });
    let output = call(&tools, ASK, asked.clone(), None).await;
    assert_eq!((output.content.as_str(), output.is_error), ("to why?", false));
    let used = output.model_use.unwrap();
    assert_eq!(used.model, "scripted/other");
    assert!(used.usage.input_tokens > 0 && used.usage.output_tokens > 0, "{used:?}");
    assert!(!call(&tools, ASK, asked.clone(), Some(1000)).await.is_error);
    let output = call(&tools, ASK, asked, Some(3)).await;
    assert!(output.is_error && output.content.contains("budget of tokens"), "{output:?}");
    let listed = call(&tools, LIST, json!({}), None).await.content;
    assert_eq!(listed, "small\nbroken (not available: no key)");
}

#[tokio::test]
async fn other_models_and_long_questions_are_refused() {
    let tools = tools("turns: [{ reply: { error: { status: 500, message: boom } } }]");
    let long = "x".repeat(MAX_CHARS);
    for (arguments, expected) in [
        (json!({ "model": "large", "prompt": "a" }), "not permitted"),
        (json!({ "model": "broken", "prompt": "a" }), "not available: no key"),
        (json!({ "model": "small" }), "`prompt` is missing"),
        (json!({ "prompt": "a" }), "`model` is missing"),
        (json!({ "model": "small", "prompt": long }), "longer than"),
        (json!({ "model": "small", "prompt": "a" }), "has not answered: "),
    ] {
        let output = call(&tools, ASK, arguments, None).await;
        assert!(output.is_error && output.content.contains(expected), "{output:?}");
        assert_eq!(output.model_use, None);
    }
}

#[tokio::test]
async fn a_question_that_waits_for_others_can_be_stopped() {
    let tools = tools("turns: [{ reply: { text: late } }]");
    let _others = tools.permits.acquire_many(PARALLEL.try_into().unwrap()).await.unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let asked = json!({ "model": "small", "prompt": "why?" });
    let waiting = stoppable(&tools, ASK, asked, None, cancel);
    let output = tokio::time::timeout(Duration::from_secs(10), waiting).await.unwrap();
    assert!(output.is_error && output.content.contains("stopped"), "{output:?}");
}
