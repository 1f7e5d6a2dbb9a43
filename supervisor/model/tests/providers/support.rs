//! What all of these tests need.

use std::collections::BTreeMap;
use std::sync::Arc;

use caipe_fixtures::openai::{Act, ModelServer};
use caipe_model::{
    ChatModel, ChatRequest, Completion, Message, ModelError, ModelEvent, ModelSettings, Part, Role, Scope,
    ToolCall, ToolSpec, connect,
};
use futures::StreamExt;
use serde_json::json;
use tokio_util::sync::CancellationToken;

/// The key that every test uses; no message may ever hold it.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

pub(crate) type Env = BTreeMap<String, String>;

pub(crate) fn env(pairs: &[(&str, &str)]) -> Env {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn model(env: &Env) -> Arc<dyn ChatModel> {
    let settings = ModelSettings::from_env(env, Scope::Global).unwrap();
    connect(&settings, reqwest::Client::new()).unwrap()
}

/// A server that does this with every request.
pub(crate) async fn server(act: Act) -> ModelServer {
    ModelServer::start([act]).await.unwrap()
}

/// An OpenAI model at the server, without retries.
pub(crate) fn openai(server: &ModelServer) -> Arc<dyn ChatModel> {
    openai_with(server, &[])
}

pub(crate) fn openai_with(server: &ModelServer, more: &[(&str, &str)]) -> Arc<dyn ChatModel> {
    let mut env =
        env(&[("OPENAI_API_KEY", KEY), ("OPENAI_MODEL_NAME", "gpt-test"), ("MAX_LLM_RETRIES", "0")]);
    env.insert("OPENAI_ENDPOINT".into(), server.url());
    env.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    model(&env)
}

pub(crate) fn ask(text: &str) -> ChatRequest {
    ChatRequest {
        system: "You are a test.".into(),
        messages: vec![Arc::new(Message::text(Role::User, text))],
        tools: [tool("task"), tool("search")].into(),
        max_output_tokens: None,
        temperature: None,
    }
}

pub(crate) fn tool(name: &str) -> ToolSpec {
    let schema = json!({ "type": "object", "properties": { "subagent_type": { "type": "string" } } });
    ToolSpec { name: name.into(), description: format!("does {name}"), schema }
}

pub(crate) type Outcome = (Vec<ModelEvent>, Result<Completion, ModelError>);

/// Streams a turn to its end. Also checks what every stream promises: one end, and nothing after it.
pub(crate) async fn run(model: &dyn ChatModel, request: ChatRequest) -> Outcome {
    let mut stream = model.stream(request, CancellationToken::new());
    let mut events = Vec::new();
    let end = loop {
        match stream.next().await.expect("a stream ends with a finish or an error") {
            Ok(ModelEvent::Finish(completion)) => break Ok(completion),
            Ok(event) => events.push(event),
            Err(error) => break Err(error),
        }
    };
    assert!(stream.next().await.is_none(), "nothing follows the end");
    if let Err(error) = &end {
        assert!(!error.to_string().contains(KEY), "the key leaked: {error}");
    }
    (events, end)
}

pub(crate) fn text(events: &[ModelEvent]) -> String {
    events
        .iter()
        .filter_map(|event| if let ModelEvent::TextDelta(text) = event { Some(text.as_str()) } else { None })
        .collect()
}

/// The calls as their start and pieces told them.
pub(crate) fn streamed_calls(events: &[ModelEvent]) -> Vec<ToolCall> {
    let mut calls: Vec<ToolCall> = Vec::new();
    for event in events {
        match event {
            ModelEvent::ToolCallStart { id, name } => {
                calls.push(ToolCall { id: id.clone(), name: name.clone(), arguments: String::new() });
            }
            ModelEvent::ToolArgsDelta { id, delta } => {
                calls
                    .iter_mut()
                    .find(|call| call.id == *id)
                    .expect("pieces follow their call's start")
                    .arguments
                    .push_str(delta);
            }
            _ => {}
        }
    }
    calls
}

pub(crate) fn calls(completion: &Completion) -> Vec<ToolCall> {
    completion.message.tool_calls().cloned().collect()
}

pub(crate) fn thoughts(completion: &Completion) -> Vec<(String, Option<String>)> {
    let parts = completion.message.parts.iter();
    parts
        .filter_map(|part| match part {
            Part::Reasoning { text, signature } => Some((text.clone(), signature.clone())),
            _ => None,
        })
        .collect()
}
