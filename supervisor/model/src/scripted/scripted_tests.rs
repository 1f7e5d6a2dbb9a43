use std::time::Duration;

use futures::StreamExt;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::chat::{Completion, FinishReason, ModelEvent, Usage};
use crate::message::{Message, Part, Role, ToolCall, ToolResult};

fn model(yaml: &str) -> Scripted {
    Scripted::from_yaml("demo.model.yaml", yaml).unwrap()
}

fn request(system: &str, messages: Vec<Message>) -> ChatRequest {
    let messages = messages.into_iter().map(Arc::new).collect();
    ChatRequest {
        system: system.into(),
        messages,
        tools: [].into(),
        max_output_tokens: None,
        temperature: None,
    }
}

fn user(text: &str) -> Message {
    Message::text(Role::User, text)
}

fn calls(calls: &[(&str, &str)]) -> Message {
    let parts = calls.iter().map(|(id, name)| {
        Part::ToolCall(ToolCall { id: (*id).into(), name: (*name).into(), arguments: "{}".into() })
    });
    Message { role: Role::Assistant, parts: parts.collect(), extra: None }
}

fn results(results: &[(&str, &str)]) -> Message {
    Message::results(results.iter().map(|(id, content)| ToolResult {
        call_id: (*id).into(),
        content: (*content).into(),
        is_error: false,
    }))
}

async fn run(model: &Scripted, request: ChatRequest) -> (Vec<ModelEvent>, Result<Completion, ModelError>) {
    let mut stream = model.stream(request, CancellationToken::new());
    let mut events = Vec::new();
    loop {
        match stream.next().await.unwrap() {
            Ok(ModelEvent::Finish(completion)) => {
                assert!(stream.next().await.is_none());
                return (events, Ok(completion));
            }
            Ok(event) => events.push(event),
            Err(error) => {
                assert!(stream.next().await.is_none());
                return (events, Err(error));
            }
        }
    }
}

async fn reply(model: &Scripted, request: ChatRequest) -> String {
    run(model, request).await.1.unwrap().message.plain_text()
}

#[tokio::test]
async fn the_first_turn_that_matches_answers() {
    let model = model(
        r#"
turns:
  - { when: { agent: jira, has_result: true, tool: get_issue, result_contains: "OPEN" }, reply: { text: jira-open } }
  - { when: { agent: jira, has_result: true }, reply: { text: jira-result } }
  - { when: { agent: jira, turn: 0 }, reply: { text: jira-first } }
  - { when: { system: "you supervise", user: compare, turn: 1 }, reply: { text: supervisor-second } }
  - { when: { system: "you supervise", user: compare }, reply: { text: supervisor } }
  - { when: { user: "*" }, reply: { text: anything } }
"#,
    );
    let jira = "Agent: Jira\nYou know tickets.";
    let boss = "Agent: supervisor\nYou supervise jira and github.";
    let table = [
        (jira, vec![user("hi")], "jira-first"),
        (jira, vec![user("hi"), calls(&[("1", "get_issue")]), results(&[("1", "state: open")])], "jira-open"),
        (jira, vec![user("hi"), calls(&[("1", "search")]), results(&[("1", "state: open")])], "jira-result"),
        (jira, vec![user("hi"), calls(&[("1", "get_issue")])], "anything"),
        (boss, vec![user("Compare them")], "supervisor"),
        (boss, vec![user("compare"), calls(&[("1", "task")]), results(&[("1", "x")])], "supervisor-second"),
        // The count and the results restart with each user message.
        (
            boss,
            vec![user("compare"), calls(&[("1", "task")]), results(&[("1", "x")]), user("compare again")],
            "supervisor",
        ),
        (boss, vec![user("something else")], "anything"),
        // Without an `Agent:` line any phrase of the prompt names the agent.
        ("You are the jira agent.", vec![user("hi")], "jira-first"),
    ];
    for (system, messages, expected) in table {
        assert_eq!(reply(&model, request(system, messages.clone())).await, expected, "{system} {messages:?}");
    }
}

#[tokio::test]
async fn templates_see_what_really_happened() {
    let model = model(
        r#"
turns:
  - when: { turn: 1 }
    reply:
      text: |
        {{ user | upper }}: {{ results[0].tool }} said {{ results[0].content | first_line }};
        {{ results[1].content | lines(2) }}; {{ (last_result | json).total }}; {{ history[0].text | truncate_chars(3) }}
      calls:
        - name: task
          arguments: { who: "{{ results[0].tool }}", deep: [1, "{{ user }}", { ok: true }] }
        - { name: "{{ results[1].tool }}", arguments: "{not json", id: mine }
"#,
    );
    let conversation = vec![
        user("count"),
        calls(&[("a", "log"), ("b", "list"), ("c", "sum")]),
        results(&[("a", "one\ntwo"), ("b", "x\ny\nz"), ("c", r#"{"total": 3}"#)]),
    ];
    let completion = run(&model, request("", conversation)).await.1.unwrap();
    assert_eq!(completion.message.plain_text(), "COUNT: log said one;\nx\ny; 3; cou…\n");
    assert_eq!(completion.reason, FinishReason::ToolCalls);
    let made: Vec<_> = completion.message.tool_calls().cloned().collect();
    let arguments = json!({ "who": "log", "deep": [1, "count", { "ok": true }] }).to_string();
    // Three calls came before in the conversation, so the fourth is number 3.
    assert_eq!(made[0], ToolCall { id: "call_3".into(), name: "task".into(), arguments });
    assert_eq!(made[1], ToolCall { id: "mine".into(), name: "list".into(), arguments: "{not json".into() });
}

#[tokio::test]
async fn text_streams_by_words_and_calls_after_it() {
    let model = model(
        r#"
turns:
  - reply:
      reasoning: let me see
      text: "  Hello,  wide\nworld "
      repeat: { token: "tok ", times: 2 }
      calls: [{ name: task, arguments: { a: 1 } }]
      usage: { input_tokens: 10, output_tokens: 5 }
      finish: length
"#,
    );
    let (events, end) = run(&model, request("", vec![user("hi")])).await;
    let expected = [
        ModelEvent::ReasoningDelta("let ".into()),
        ModelEvent::ReasoningDelta("me ".into()),
        ModelEvent::ReasoningDelta("see".into()),
        ModelEvent::TextDelta("  Hello,  ".into()),
        ModelEvent::TextDelta("wide\n".into()),
        ModelEvent::TextDelta("world ".into()),
        ModelEvent::TextDelta("tok ".into()),
        ModelEvent::TextDelta("tok ".into()),
        ModelEvent::ToolCallStart { id: "call_0".into(), name: "task".into() },
        ModelEvent::ToolArgsDelta { id: "call_0".into(), delta: r#"{"a":1}"#.into() },
    ];
    assert_eq!(events, expected);
    let completion = end.unwrap();
    assert_eq!(completion.message.plain_text(), "  Hello,  wide\nworld tok tok ");
    assert_eq!(completion.usage, Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() });
    assert_eq!((completion.reason, completion.model.as_str()), (FinishReason::Length, "scripted/demo"));
}

#[tokio::test]
async fn replies_fail_where_they_are_reported_to() {
    let model = model(
        r#"
turns:
  - { when: { user: limited }, reply: { error: { status: 429, message: "slow", retry_after_ms: 1500 } } }
  - { when: { user: half }, reply: { text: "one two three", error: { kind: truncated, after_tokens: 2 } } }
  - { when: { user: late }, reply: { text: "one two", error: { kind: overloaded, after_tokens: 99 } } }
"#,
    );
    let (events, end) = run(&model, request("", vec![user("limited")])).await;
    let error = end.unwrap_err();
    assert_eq!((events.len(), error.kind), (0, ModelErrorKind::RateLimited));
    assert_eq!(error.retry_after, Some(Duration::from_millis(1500)));
    assert_eq!(error.to_string(), "scripted/demo: scripted takes no more requests for now (429): slow");

    let (events, end) = run(&model, request("", vec![user("half")])).await;
    assert_eq!((events.len(), end.unwrap_err().kind), (2, ModelErrorKind::Truncated));

    let (events, end) = run(&model, request("", vec![user("late")])).await;
    assert_eq!((events.len(), end.unwrap_err().kind), (2, ModelErrorKind::Overloaded));
}

#[tokio::test]
async fn what_no_turn_answers_is_reported_with_the_files_name() {
    let model = model("turns: [{ when: { user: hello }, reply: { text: hi } }]");
    let conversation = vec![user("bye"), calls(&[("1", "search")]), results(&[("1", "found")])];
    let error = run(&model, request("Agent: jira", conversation)).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest);
    assert_eq!(
        error.message,
        r#"no turn of the script demo.model.yaml answers agent "jira", user "bye", turn 1, last result "found" of search; add one to its `turns`"#
    );
}

#[tokio::test]
async fn what_is_undefined_is_an_error_not_an_empty_text() {
    for template in
        ["{{ last_result }}", "{{ results[3].content }}", "{{ user | nofilter }}", "{{ user | json }}"]
    {
        let model = model(&format!("turns: [{{ reply: {{ text: '{template}' }} }}]"));
        let error = run(&model, request("", vec![user("hi")])).await.1.unwrap_err();
        assert!(error.message.contains(template) && error.message.contains("demo.model.yaml"), "{error}");
    }
}

#[tokio::test]
async fn a_runaway_template_is_stopped() {
    let model = model(
        "turns: [{ reply: { text: '{% for i in range(9999) %}{% for j in range(9999) %}x{% endfor %}{% endfor %}' } }]",
    );
    let error = run(&model, request("", vec![user("hi")])).await.1.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::InvalidRequest, "{error}");
}

#[test]
fn faults_of_the_file_are_located() {
    let table = [
        ("turns:\n  - reply: { text: hi }\n    wen: {}\n", "line 3"),
        ("turns:\n  - reply: { text: [1] }\n", "line 2"),
        ("turns: [\n", "line 1"),
        ("turns: []", "turns: a script needs at least one turn"),
        ("turns: [{ reply: {} }]", "turns[0].reply: a reply needs"),
        ("turns: [{ reply: { text: a } }, { reply: { text: '{{ oops' } }]", "turns[1].reply.text: "),
        (
            "turns: [{ reply: { calls: [{ name: t, arguments: { a: [1, '{% if %}'] } }] } }]",
            "turns[0].reply.calls[0].arguments.a[1]: ",
        ),
        ("turns: [{ reply: { calls: [{ name: '{{' }] } }]", "turns[0].reply.calls[0].name: "),
        (
            "turns: [{ reply: { text: '{{ usr }}' } }]",
            "turns[0].reply.text: \"usr\" is not known; there are user",
        ),
        ("turns: [{ reply: { error: {} } }]", "turns[0].reply.error: needs either a kind or a status"),
        ("turns: [{ reply: { error: { status: 200 } } }]", "turns[0].reply.error.status: 200 is not"),
        (
            "turns: [{ reply: { repeat: { token: a, times: 99999999 } } }]",
            "turns[0].reply.repeat.times: at most",
        ),
        ("turns: [{ reply: { error: { kind: tired } } }]", "tired"),
    ];
    for (yaml, expected) in table {
        let error = Scripted::from_yaml("demo.yaml", yaml).unwrap_err().to_string();
        assert!(error.starts_with("failed to read the script demo.yaml: "), "{error}");
        assert!(error.contains(expected), "{yaml}\n-> {error}\nwithout {expected}");
    }
    let huge = Scripted::from_yaml("demo.yaml", &" ".repeat(2 * 1024 * 1024)).unwrap_err();
    assert!(matches!(huge, ScriptError::TooLarge { .. }), "{huge}");
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_as_reported() {
    let model = model("turns: [{ reply: { text: one two three, ttft_ms: 1000, delay_ms: 100 } }]");
    let began = Instant::now();
    let (events, end) = run(&model, request("", vec![user("hi")])).await;
    assert!(end.is_ok() && events.len() == 3);
    assert_eq!(began.elapsed().as_millis(), 1200);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_reply_ends_at_once() {
    let model = model("turns: [{ reply: { text: one two, ttft_ms: 100, delay_ms: 3600000 } }]");
    let cancel = CancellationToken::new();
    let mut stream = model.stream(request("", vec![user("hi")]), cancel.clone());
    stream.next().await.unwrap().unwrap();
    let began = Instant::now();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        cancel.cancel();
    });
    assert_eq!(stream.next().await.unwrap().unwrap_err().kind, ModelErrorKind::Cancelled);
    assert!(stream.next().await.is_none() && began.elapsed() < Duration::from_secs(1));
}

proptest::proptest! {
    /// Whatever the text, its words put together are the text, and each step moves on.
    #[test]
    fn words_are_the_text(text in "[ \\n\\ta-zäß…😀\u{a0}]{0,60}") {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let yaml = serde_json::to_string(&json!({ "turns": [{ "reply": { "text": text } }] })).unwrap();
        let model = Scripted::from_yaml("p.yaml", &yaml).unwrap();
        let (events, end) = runtime.block_on(run(&model, request("", vec![user("hi")])));
        let joined: String = events.iter().map(|event| match event {
            ModelEvent::TextDelta(text) => text.as_str(),
            _ => "",
        }).collect();
        proptest::prop_assert_eq!(&joined, &text);
        proptest::prop_assert_eq!(end.unwrap().message.plain_text(), text);
    }
}
