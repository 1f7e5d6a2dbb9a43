//! The wire of an agent, event by event.

use caipe_engine::{AnswerOrigin, CallEnd, Form};
use serde_json::json;

use super::*;
use crate::binding::{Binding, Presentation};

const ACTIVITY: &str = crate::binding::ACTIVITY_EXTENSION;

fn own(kind: EventKind) -> RunEvent {
    RunEvent::own(kind)
}

fn text(text: &str, role: TextRole) -> RunEvent {
    own(EventKind::Text { text: text.to_owned(), role })
}

fn started(call: &str, tool: &str) -> EventKind {
    EventKind::ToolStarted { call: call.to_owned(), tool: tool.to_owned() }
}

fn ended(call: &str, tool: &str, end: CallEnd) -> EventKind {
    let output = Some("äöü and more".to_owned());
    EventKind::ToolFinished { call: call.to_owned(), tool: tool.to_owned(), end, output }
}

fn finished(outcome: Outcome) -> RunEvent {
    own(EventKind::Finished { outcome })
}

fn completed(text: &str) -> RunEvent {
    finished(Outcome::Completed { text: text.to_owned(), origin: AnswerOrigin::Model })
}

fn bind(tool_output: Option<usize>, events: impl IntoIterator<Item = RunEvent>) -> Vec<Event> {
    let mut binding =
        Binding::new("t", "c", "trace", &Presentation::SubAgent { name: "jira".into(), tool_output });
    (1..).zip(events).flat_map(|(number, event)| binding.bind(number, &event)).collect()
}

/// `name|text|append|lastChunk` of an artifact, `state|text` of a status.
fn line(event: &Event) -> String {
    match event {
        Event::ArtifactUpdate(update) => {
            let name = update.artifact.name.as_deref().unwrap_or_default();
            format!("{name}|{}|{}|{}", update.artifact.text(), update.append, update.last_chunk)
        }
        Event::StatusUpdate(update) => {
            let text = update.status.message.as_ref().map(caipe_a2a::model::Message::text);
            format!("{}|{}", update.status.state, text.unwrap_or_default())
        }
        other => panic!("unexpected {other:?}"),
    }
}

fn lines(events: &[Event]) -> Vec<String> {
    events.iter().map(line).collect()
}

fn metadata(event: &Event) -> &Metadata {
    match event {
        Event::ArtifactUpdate(update) => update.artifact.metadata.as_ref().unwrap(),
        other => panic!("not an artifact: {other:?}"),
    }
}

#[test]
fn calls_words_and_the_answer_in_the_order_of_the_contract() {
    let wire = bind(
        None,
        [
            text("I look. ", TextRole::Narration),
            own(started("c1", "get_issue")),
            own(ended("c1", "get_issue", CallEnd::Completed)),
            text("3 ", TextRole::Plain),
            text("tickets", TextRole::Plain),
            completed("3 tickets"),
        ],
    );
    assert_eq!(
        lines(&wire),
        [
            "working|",
            "streaming_result|I look. |false|false",
            "tool_notification_start|🔧 Jira: Calling tool: Get_Issue\n|false|false",
            "tool_notification_end|✅ Jira: Tool Get_Issue completed\n|false|false",
            "streaming_result|3 |true|false",
            "streaming_result|tickets|true|false",
            "streaming_result||true|true",
            "complete_result|3 tickets|false|true",
            "completed|",
        ]
    );
    let artifacts = wire.iter().filter(|event| matches!(event, Event::ArtifactUpdate(_)));
    for event in artifacts {
        assert_eq!(metadata(event)["sourceAgent"], "jira");
        assert_eq!(metadata(event)["agentType"], "sub-agent");
    }
    assert_eq!(metadata(&wire[1])["is_narration"], true);
}

#[test]
fn an_unseen_answer_comes_in_pieces_and_an_empty_one_is_sent_too() {
    let answer = "word ".repeat(90);
    let wire = bind(None, [completed(&answer)]);
    let pieces = wire.iter().filter(|event| line(event).starts_with("streaming_result|word"));
    assert!(pieces.count() > 1);
    assert_eq!(line(&wire[wire.len() - 2]), format!("complete_result|{answer}|false|true"));
    let expected = ["streaming_result||false|true", "complete_result||false|true", "completed|"];
    assert_eq!(lines(&bind(None, [completed("")])), expected);
}

#[test]
fn what_a_tool_returned_is_shown_only_on_request_and_cut_between_characters() {
    let events = || [own(started("c1", "get_issue")), own(ended("c1", "get_issue", CallEnd::Failed))];
    let shown = bind(Some(2), events());
    assert_eq!(
        lines(&shown)[2..],
        [
            "tool_output|📄 Jira: Tool output:\näö...\n[Output truncated]\n\n|false|false",
            "tool_notification_end|❌ Jira: Tool Get_Issue failed with an error\n|false|false",
        ]
    );
    assert_eq!(metadata(&shown[2])[ACTIVITY]["event"], "tool_output");
    assert_eq!(
        lines(&bind(Some(100), events()))[2].split('|').nth(1),
        Some("📄 Jira: Tool output:\näöü and more\n\n")
    );
    assert_eq!(bind(None, events()).len(), 3);
}

#[test]
fn steps_of_agents_further_down_keep_their_path() {
    let (github, asked) = (AgentName::new("github"), AgentName::new("github"));
    let wire = bind(
        None,
        [
            own(EventKind::DelegationStarted { call: "c1".to_owned(), agent: asked.clone() }),
            own(started("x", "log")).within(&github),
            own(EventKind::DelegationFinished {
                call: "c1".to_owned(),
                agent: asked,
                end: CallEnd::Completed,
                text: "2".to_owned(),
            }),
        ],
    );
    assert_eq!(
        lines(&wire)[1..],
        [
            "tool_notification_start|🔧 Jira: Calling tool: Github\n|false|false",
            "tool_notification_start|🔧 Github: Calling tool: Log\n|false|false",
            "tool_notification_end|❌ Github: Tool Log canceled\n|false|false",
            "tool_notification_end|✅ Jira: Tool Github completed\n|false|false",
        ]
    );
    let activity = |at: usize| metadata(&wire[at])[ACTIVITY].clone();
    let start = json!({"event": "agent_start", "agent": "github", "callId": "c1", "status": "running"});
    assert_eq!(activity(1), start);
    let nested = json!({"event": "tool_start", "agent": "github", "tool": "log", "callId": "x", "status": "running", "path": ["github"]});
    assert_eq!(activity(2), nested);
    assert_eq!(metadata(&wire[2])["sourceAgent"], "github");
    assert_eq!(activity(4)["event"], "agent_end");
}

#[test]
fn a_run_without_an_answer_ends_what_it_began() {
    let begun = || vec![text("I loo", TextRole::Plain), own(started("c1", "get_issue"))];
    let tail = [
        "tool_notification_end|❌ Jira: Tool Get_Issue canceled\n|false|false",
        "streaming_result||true|true",
    ];
    let canceled = bind(None, [begun(), vec![finished(Outcome::Canceled)]].concat());
    assert_eq!(lines(&canceled)[3..], [&tail[..], &["canceled|"]].concat());
    let failed = bind(None, [begun(), vec![finished(Outcome::Failed { reason: "no".to_owned() })]].concat());
    assert_eq!(lines(&failed)[3..], [&tail[..], &["error_result|no|false|true", "failed|no"]].concat());
    let before = bind(None, [finished(Outcome::Canceled)]);
    assert_eq!(lines(&before), ["canceled|"], "who never began was not at work");
}

#[test]
fn a_question_is_the_same_form_as_the_supervisors_and_the_task_goes_on_after_it() {
    let form = Form { action: "write".to_owned(), description: "May I?".to_owned(), ..Form::default() };
    let asks = own(EventKind::InputRequired { form });
    let wire = bind(
        None,
        [
            asks.clone(),
            asks,
            finished(Outcome::InputRequired),
            own(started("c1", "write")),
            completed("done"),
        ],
    );
    assert_eq!(
        lines(&wire),
        [
            "working|",
            "UserInputMetaData||false|false",
            "UserInputMetaData||false|false",
            "input-required|May I?\n\nAnswer with `approve` or `reject`.\n\nMay I?\n\nAnswer with `approve` or `reject`.",
            "working|",
            "tool_notification_start|🔧 Jira: Calling tool: Write\n|false|false",
            "streaming_result|done|false|false",
            "streaming_result||true|true",
            "complete_result|done|false|true",
            "completed|",
        ]
    );
    let Event::ArtifactUpdate(update) = &wire[1] else { panic!("{:?}", wire[1]) };
    let data = update.artifact.parts[0].as_data().unwrap();
    assert_eq!((&data["user_input"], &data["action_name"]), (&json!(true), &json!("write")));
}

#[test]
fn the_words_of_a_foreign_agent_that_it_asked_go_on() {
    let noticed = EventKind::Noticed { text: "🔍 Searching logs".to_owned(), end: None };
    let wire = bind(None, [own(noticed).within(&AgentName::new("theirs"))]);
    assert_eq!(lines(&wire)[1..], ["tool_notification_start|🔍 Theirs: Searching logs\n|false|false"]);
    assert_eq!(metadata(&wire[1])["sourceAgent"], "theirs");
}

#[test]
fn its_plan_is_its_own_matter() {
    let todo = EventKind::TodoStarted { content: "look".to_owned() };
    assert_eq!(lines(&bind(None, [own(todo), own(EventKind::Composing)])), ["working|"]);
}

#[test]
fn a_turn_that_starts_again_replaces_what_was_shown() {
    let wire = bind(
        None,
        [
            text("Hel", TextRole::Plain),
            own(EventKind::TextReset),
            text("Hello", TextRole::Plain),
            completed("Hello"),
        ],
    );
    assert_eq!(
        lines(&wire)[1..5],
        [
            "streaming_result|Hel|false|false",
            "streaming_result||false|false",
            "streaming_result|Hello|true|false",
            "streaming_result||true|true"
        ]
    );
}
