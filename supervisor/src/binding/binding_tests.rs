//! The wire's texts, order and ids, event by event.

use caipe_a2a::model::{Event, TaskArtifactUpdateEvent, TaskState};
use caipe_engine::{
    AgentName, AnswerOrigin, CallEnd, EventKind, Form, FormField, Outcome, PlanCause, PlanStep, RunEvent,
    StepStatus, TextRole,
};
use serde_json::json;

use super::{Binding, Presentation};

fn binding() -> Binding {
    showing(None)
}

/// A binding that shows so many characters of what agents' tools return.
fn showing(tool_output: Option<usize>) -> Binding {
    let presentation = Presentation::Supervisor { tool_output };
    Binding::new("task-1", "context-1", "0af7651916cd43dd8448eb211c80319c", &presentation)
}

fn own(kind: EventKind) -> RunEvent {
    RunEvent::own(kind)
}

fn of(agent: &str, kind: EventKind) -> RunEvent {
    RunEvent::own(kind).within(&AgentName::new(agent))
}

fn text(text: &str, role: TextRole) -> RunEvent {
    own(EventKind::Text { text: text.to_owned(), role })
}

fn steps(list: &[(&str, &str, StepStatus)]) -> Vec<PlanStep> {
    let step = |(order, (agent, title, status)): (usize, &(&str, &str, StepStatus))| PlanStep {
        step_id: format!("step-{order}"),
        title: (*title).to_owned(),
        agent: (*agent).to_owned(),
        status: *status,
        skipped: false,
        order,
    };
    list.iter().enumerate().map(step).collect()
}

fn plan(list: &[(&str, &str, StepStatus)], cause: PlanCause) -> RunEvent {
    own(EventKind::Plan { steps: steps(list), cause, first: false })
}

fn completed(text: &str, origin: AnswerOrigin) -> RunEvent {
    own(EventKind::Finished { outcome: Outcome::Completed { text: text.to_owned(), origin } })
}

fn delegated(agent: &str, end: CallEnd, text: &str) -> [RunEvent; 2] {
    let (call, agent) = ("c1".to_owned(), AgentName::new(agent));
    [
        own(EventKind::DelegationStarted { call: call.clone(), agent: agent.clone() }),
        own(EventKind::DelegationFinished { call, agent, end, text: text.to_owned() }),
    ]
}

fn bind(events: impl IntoIterator<Item = RunEvent>) -> Vec<Event> {
    let mut binding = binding();
    (1..).zip(events).flat_map(|(number, event)| binding.bind(number, &event)).collect()
}

fn artifact(event: &Event) -> &TaskArtifactUpdateEvent {
    match event {
        Event::ArtifactUpdate(update) => update,
        other => panic!("not an artifact: {other:?}"),
    }
}

/// `name|description|text|append|lastChunk` of an artifact, `state|text` of a status.
fn line(event: &Event) -> String {
    match event {
        Event::ArtifactUpdate(update) => format!(
            "{}|{}|{}|{}|{}",
            update.artifact.name.as_deref().unwrap_or_default(),
            update.artifact.description.as_deref().unwrap_or_default(),
            update.artifact.text(),
            update.append,
            update.last_chunk
        ),
        Event::StatusUpdate(update) => {
            format!(
                "{}|{}",
                update.status.state,
                update.status.message.as_ref().map(caipe_a2a::model::Message::text).unwrap_or_default()
            )
        }
        other => panic!("unexpected {other:?}"),
    }
}

fn lines(events: &[Event]) -> Vec<String> {
    events.iter().map(line).collect()
}

fn member<'a>(event: &'a Event, name: &str) -> Option<&'a serde_json::Value> {
    artifact(event).artifact.metadata.as_ref()?.get(name)
}

#[test]
fn a_delegation_shows_the_agent_and_never_the_tool_that_delegates() {
    let mut events = Vec::from(delegated("jira", CallEnd::Completed, "3 tickets"));
    let call = "c7".to_owned();
    events.insert(1, of("jira", EventKind::ToolStarted { call: call.clone(), tool: "get_issue".to_owned() }));
    let tool = "get_issue".to_owned();
    events
        .insert(2, of("jira", EventKind::ToolFinished { call, tool, end: CallEnd::Completed, output: None }));
    let wire = bind(events);
    assert_eq!(
        lines(&wire),
        [
            "tool_notification_start|Tool call started: jira|🔧 Supervisor: Calling Agent Jira...\n|false|false",
            "tool_notification_start|Tool call started: get_issue|🔧 Jira: Calling tool: Get_Issue\n|false|false",
            "tool_notification_end|Tool call completed: get_issue|✅ Jira: Tool Get_Issue completed\n|false|false",
            "complete_result|From sub-agent|3 tickets|false|true",
            "tool_notification_end|Tool call completed: jira|✅ Supervisor: Agent task Jira completed\n|false|false",
        ]
    );
    assert!(wire.iter().all(|event| member(event, "sourceAgent") == Some(&json!("jira"))));
    let kinds: Vec<_> =
        wire.iter().map(|event| member(event, "agentType").unwrap().as_str().unwrap()).collect();
    assert_eq!(kinds, ["notification", "sub-agent", "sub-agent", "sub-agent", "notification"]);
    let mut ids: Vec<_> = wire.iter().map(|event| artifact(event).artifact.artifact_id.clone()).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), wire.len(), "every notification has an id of its own");
}

#[test]
fn what_an_agents_tool_returned_is_shown_only_if_that_is_switched_on_and_then_cut() {
    let (call, tool, output) = ("c".to_owned(), "get_issue".to_owned(), Some("one\ntwo".to_owned()));
    let event = of("jira", EventKind::ToolFinished { call, tool, end: CallEnd::Completed, output });
    let end = "tool_notification_end|Tool call completed: get_issue|✅ Jira: Tool Get_Issue completed\n|false|false";
    assert_eq!(lines(&showing(None).bind(1, &event)), [end]);
    let shown = lines(&showing(Some(5)).bind(1, &event));
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert!(shown[0].starts_with("tool_output|") && shown[1] == end, "{shown:?}");
    assert!(shown[0].contains("📄 Jira: Tool output:\none\nt...\n[Output truncated]\n\n"), "{shown:?}");
}

#[test]
fn a_failed_agent_says_why_in_one_sentence_and_gives_no_result() {
    let wire =
        bind(delegated("argocd", CallEnd::Failed, "connection **refused**\nby 10.0.0.1. Go on without it."));
    assert_eq!(
        lines(&wire)[1..],
        [
            "tool_notification_end|Tool call completed: argocd|❌ Argocd: error: connection refused by 10.0.0.1\n|false|false"
        ]
    );
}

#[test]
fn the_first_plan_is_an_update_and_later_ones_change_its_status_under_the_same_id() {
    use StepStatus::{Completed, InProgress, Pending};
    let wire = bind([
        plan(&[("Jira", "Search", InProgress), ("Github", "List", Pending)], PlanCause::Todos),
        plan(&[("Jira", "Search", Completed), ("Github", "List", InProgress)], PlanCause::Todos),
        plan(&[("Jira", "Search", Completed), ("Github", "List", Completed)], PlanCause::Closing),
    ]);
    let summary: Vec<_> = lines(&wire);
    assert_eq!(
        summary,
        [
            "execution_plan_update|Execution plan||false|false",
            "execution_plan_status_update|Execution plan progress update||false|false",
            "execution_plan_status_update|All execution steps completed||true|false",
        ]
    );
    let first = artifact(&wire[0]);
    assert!(wire.iter().all(|event| artifact(event).artifact.artifact_id == first.artifact.artifact_id));
    let data = first.artifact.parts[0].as_data().unwrap();
    assert_eq!(
        data["steps"][0],
        json!({"step_id": "step-0", "title": "Search", "agent": "Jira", "status": "in_progress", "order": 0})
    );
}

#[test]
fn other_steps_than_the_client_knows_make_a_plan_again() {
    use StepStatus::{InProgress, Pending};
    let wire = bind([
        plan(&[("Jira", "Search", InProgress)], PlanCause::Todos),
        plan(&[("Jira", "Search", InProgress), ("Github", "List", Pending)], PlanCause::Todos),
    ]);
    assert_eq!(
        lines(&wire),
        [
            "execution_plan_update|Execution plan||false|false",
            "execution_plan_update|Execution plan progress update||false|false",
        ]
    );
    assert_eq!(artifact(&wire[0]).artifact.artifact_id, artifact(&wire[1]).artifact.artifact_id);
}

#[test]
fn notifications_belong_to_the_agents_own_step_else_to_the_current_one() {
    use StepStatus::{InProgress, Pending};
    let list = [("Jira", "Search", InProgress), ("Github", "List", Pending)];
    let mut events = vec![plan(&list, PlanCause::Todos)];
    events.extend(delegated("github", CallEnd::Completed, "2"));
    events.push(own(EventKind::ToolStarted { call: "c2".to_owned(), tool: "jq".to_owned() }));
    let wire = bind(events);
    assert_eq!(member(&wire[1], "plan_step_id"), Some(&json!("step-1")));
    assert_eq!(member(wire.last().unwrap(), "plan_step_id"), Some(&json!("step-0")));
}

#[test]
fn an_answer_streams_under_one_id_and_comes_whole_at_the_end() {
    let wire = bind([
        text("Hello ", TextRole::Answer),
        text("world", TextRole::Answer),
        completed("Hello world", AnswerOrigin::Structured),
    ]);
    assert_eq!(
        lines(&wire),
        [
            "streaming_result|Streaming result|Hello |false|false",
            "streaming_result|Streaming result|world|true|false",
            "final_result|Complete result from Platform Engineer|Hello world|false|true",
            "completed|",
        ]
    );
    assert_eq!(member(&wire[0], "is_final_answer"), Some(&json!(true)));
    assert_eq!(member(&wire[2], "trace_id"), Some(&json!("0af7651916cd43dd8448eb211c80319c")));
    let Event::StatusUpdate(last) = &wire[3] else { panic!() };
    assert_eq!(last.metadata.as_ref().unwrap()["trace_id"], "0af7651916cd43dd8448eb211c80319c");
}

#[test]
fn an_answer_that_nobody_saw_is_cut_into_pieces_first() {
    let answer = "word ".repeat(90);
    let wire = bind([completed(&answer, AnswerOrigin::Structured)]);
    let pieces: Vec<_> = wire.iter().filter(|event| line(event).starts_with("streaming_result")).collect();
    assert!(pieces.len() > 1);
    assert_eq!(pieces.iter().map(|event| artifact(event).artifact.text()).collect::<String>(), answer);
    let appends: Vec<bool> = pieces.iter().map(|event| artifact(event).append).collect();
    assert_eq!(appends, [vec![false], vec![true; pieces.len() - 1]].concat());
}

#[test]
fn each_origin_has_its_name() {
    let cases = [
        (AnswerOrigin::Model, "final_result|Final result|x|false|true"),
        (AnswerOrigin::Synthesis, "final_result|Synthesized result from multiple agents|x|false|true"),
        (AnswerOrigin::Partial, "partial_result|Partial result (stream ended)|x|false|true"),
        (AnswerOrigin::Recovered, "final_result|Recovered result|x|false|true"),
    ];
    for (origin, expected) in cases {
        let streamed = "streaming_result|Streaming final answer chunk|x|false|false";
        assert_eq!(lines(&bind([completed("x", origin)])), [streamed, expected, "completed|"]);
    }
    assert_eq!(lines(&bind([completed("", AnswerOrigin::Partial)])), ["completed|"]);
}

/// The text of the streaming artifact, as a client of the SDKs keeps it.
fn streamed(wire: &[Event]) -> String {
    let mut texts: Vec<(String, String)> = Vec::new();
    for event in wire.iter().filter(|event| line(event).starts_with("streaming_result")) {
        let (update, text) = (artifact(event), artifact(event).artifact.text());
        match texts.iter_mut().find(|(id, _)| *id == update.artifact.artifact_id) {
            Some((_, known)) if update.append => known.push_str(&text),
            Some((_, known)) => *known = text,
            None => texts.push((update.artifact.artifact_id.clone(), text)),
        }
    }
    texts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("|")
}

#[test]
fn the_words_of_the_supervisor_are_shown_after_an_agents_too() {
    let jira = delegated("jira", CallEnd::Completed, "3");
    let events = [
        vec![text("I look. ", TextRole::Plain)],
        jira.to_vec(),
        vec![text("There are 3.", TextRole::Plain), completed("There are 3.", AnswerOrigin::Model)],
    ];
    let wire = bind(events.concat());
    assert_eq!(streamed(&wire), "I look. There are 3.");
}

#[test]
fn an_answer_that_was_not_streamed_goes_behind_what_was() {
    let events = [text("I look.", TextRole::Plain), completed("It is done.", AnswerOrigin::Structured)];
    let wire = bind(events);
    assert_eq!(streamed(&wire), "I look.\n\nIt is done.");
    assert_eq!(member(&wire[1], "is_final_answer"), Some(&json!(true)));
    assert!(artifact(&wire[1]).append);
}

#[test]
fn an_answer_that_was_streamed_as_narration_takes_its_place() {
    let wire = bind([
        text("I look. ", TextRole::Plain),
        text("It is done.", TextRole::Narration),
        completed("It is done.", AnswerOrigin::Model),
    ]);
    let last = &wire[2];
    assert!(line(last).starts_with("streaming_result|Streaming result|It is done.|false|"), "{}", line(last));
    assert_eq!(streamed(&wire), "It is done.", "nobody reads it twice");
    let alone = bind([text("Fine.", TextRole::Narration), completed("Fine.", AnswerOrigin::Model)]);
    assert_eq!(alone.len(), 3, "a client that hides narration shows the result at the end");
}

#[test]
fn words_of_agents_are_text_under_their_step() {
    use StepStatus::InProgress;
    let words = |text: &str| of("jira", EventKind::Text { text: text.to_owned(), role: TextRole::Plain });
    let [start, end] = delegated("jira", CallEnd::Completed, "3");
    let wire =
        bind([plan(&[("Jira", "a", InProgress)], PlanCause::Todos), start, words("I "), words("look."), end]);
    assert_eq!(
        lines(&wire)[2..4],
        [
            "streaming_result|Streaming result from jira|I |false|false",
            "streaming_result|Streaming result from jira|look.|true|false"
        ]
    );
    for event in &wire[2..4] {
        assert_eq!(member(event, "sourceAgent"), Some(&json!("jira")));
        assert_eq!(member(event, "agentType"), Some(&json!("sub-agent")));
        assert_eq!(member(event, "plan_step_id"), Some(&json!("step-0")));
    }
}

#[test]
fn that_the_answer_is_composed_is_never_the_first_sign() {
    let composing = || own(EventKind::Composing);
    assert_eq!(bind([composing()]), []);
    let tool = EventKind::ToolStarted { call: "c".to_owned(), tool: "jq".to_owned() };
    assert_eq!(bind([own(tool), composing()]).len(), 2);
}

#[test]
fn a_plan_that_goes_on_after_a_question_is_no_new_one() {
    use StepStatus::{Completed, InProgress};
    let wire = bind([
        plan(&[("Jira", "a", InProgress)], PlanCause::Resumed),
        own(EventKind::ToolStarted { call: "c".to_owned(), tool: "jq".to_owned() }),
        plan(&[("Jira", "a", Completed)], PlanCause::Progress),
    ]);
    assert!(line(&wire[0]).starts_with("execution_plan_status_update|"), "{}", line(&wire[0]));
    assert_eq!(member(&wire[1], "plan_step_id"), Some(&json!("step-0")));
    assert!(line(&wire[2]).starts_with("execution_plan_status_update|"), "{}", line(&wire[2]));
}

#[test]
fn an_approval_is_asked_in_words_and_as_a_form() {
    let approval = Form::approval("delete_issue", json!({"id": 7}));
    let form = Form { id: "i".to_owned(), digest: "d".to_owned(), ..approval };
    let [approve, reject, respond] = ["approve", "reject", "respond"].map(|word| form.choice(word));
    assert_ne!(approve, "approve", "with a code");
    let waits = EventKind::Finished { outcome: Outcome::InputRequired };
    let wire = bind([own(EventKind::InputRequired { form }), own(waits)]);
    let asked = format!(
        "The agent wants to call delete_issue.\n\nArguments: `{{\"id\":7}}`\n\nAnswer with `{approve}`, `{reject}` or `{respond}: TEXT`."
    );
    assert_eq!(streamed(&wire), asked);
    let form = &wire[2];
    assert_eq!(artifact(form).artifact.text(), asked);
    let data = artifact(form).artifact.parts[0].as_data().unwrap();
    assert_eq!((&data["interaction_id"], &data["digest"]), (&json!("i"), &json!("d")));
    let field = &data["input_fields"][0];
    assert_eq!(
        (&field["field_name"], &field["field_values"]),
        (&json!("decision"), &json!(["approve", "reject"]))
    );
    assert_eq!(field["required"], true);
    assert_eq!(field["field_description"], "Whether delete_issue with {\"id\":7} may run");
}

#[test]
fn a_form_without_a_heading_leaves_it_to_the_client() {
    let form = Form { action: "CAIPEAgentResponse".to_owned(), ..Form::default() };
    let wire = bind([own(EventKind::InputRequired { form })]);
    let data = wire.iter().filter_map(|event| match event {
        Event::ArtifactUpdate(update) => update.artifact.parts[0].as_data(),
        _ => None,
    });
    assert_eq!(data.filter(|data| data.get("input_title").is_none()).count(), 1);
}

#[test]
fn an_unclear_answer_repeats_the_question() {
    let reason = "Which one?".to_owned();
    let form = Form::approval("delete_issue", json!({}));
    let wire = bind([
        own(EventKind::DecisionRefused { reason }),
        own(EventKind::InputRequired { form }),
        own(EventKind::Finished { outcome: Outcome::InputRequired }),
    ]);
    assert!(streamed(&wire).starts_with("Which one?\n\nThe agent wants to call delete_issue."));
    let last = line(wire.last().unwrap());
    let question =
        "The agent wants to call delete_issue.\n\nArguments: `{}`\n\nAnswer with `approve` or `reject`.";
    assert_eq!(last, format!("input-required|Which one?\n\n{question}"), "all that a plain client needs");
}

#[test]
fn a_failure_is_text_that_every_client_shows_and_no_result() {
    let reason = "Agent execution failed: no".to_owned();
    let wire = bind([own(EventKind::Finished { outcome: Outcome::Failed { reason } })]);
    assert_eq!(
        lines(&wire),
        [
            "streaming_result|Streaming final answer chunk|Agent execution failed: no\n|false|false",
            "failed|Agent execution failed: no"
        ]
    );
}

#[test]
fn the_reason_of_a_failure_comes_before_the_steps_that_failed() {
    let steps = steps(&[("ops", "look", StepStatus::Failed)]);
    let reason = "Agent execution failed: no".to_owned();
    let wire = bind([
        own(EventKind::Plan { steps, first: false, cause: PlanCause::GivenUp }),
        own(EventKind::Finished { outcome: Outcome::Failed { reason } }),
    ]);
    let names: Vec<String> =
        lines(&wire).iter().map(|line| line.split('|').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(names, ["streaming_result", "execution_plan_update", "failed"]);
}

#[test]
fn results_of_the_knowledge_base_are_never_shown() {
    let call = "c1".to_owned();
    let tool = "fetch_document".to_owned();
    let wire = bind([own(EventKind::ToolFinished { call, tool, end: CallEnd::Completed, output: None })]);
    assert_eq!(
        lines(&wire),
        [
            "tool_notification_end|Tool call completed: fetch_document|✅ Supervisor: Agent task Fetch_Document completed\n|false|false"
        ]
    );
}

#[test]
fn a_turn_that_starts_again_replaces_what_was_shown() {
    let wire = bind([
        own(EventKind::TurnStarted),
        text("I look. ", TextRole::Narration),
        own(EventKind::TurnStarted),
        text("Hel", TextRole::Answer),
        own(EventKind::TextReset),
        own(EventKind::TurnStarted),
        text("Hello", TextRole::Answer),
    ]);
    let updates: Vec<_> = wire.iter().map(artifact).collect();
    assert!(updates.iter().all(|update| update.artifact.artifact_id == updates[0].artifact.artifact_id));
    let texts: Vec<_> = updates.iter().map(|update| (update.artifact.text(), update.append)).collect();
    let wanted = [("I look. ", false), ("Hel", true), ("I look. ", false), ("Hello", true)];
    assert_eq!(texts, wanted.map(|(text, append)| (text.to_owned(), append)));
}

#[test]
fn a_form_is_sent_as_data_and_the_task_waits() {
    let field = FormField { field_name: "repo".to_owned(), required: true, ..FormField::default() };
    let form = Form {
        action: "CAIPEAgentResponse".to_owned(),
        title: "New repository".to_owned(),
        description: "Which repository?".to_owned(),
        fields: vec![field],
        ..Form::default()
    };
    let wire = bind([
        own(EventKind::InputRequired { form }),
        own(EventKind::Finished { outcome: Outcome::InputRequired }),
    ]);
    assert_eq!(
        lines(&wire),
        [
            "working|Which repository?",
            "streaming_result|Streaming final answer chunk|Which repository?\n\n- `repo` (required)\n\nAnswer with a line \
             `field: value` for each field.|false|false",
            "UserInputMetaData|Structured user input form definition|Which repository?\n\n- `repo` (required)\n\nAnswer \
             with a line `field: value` for each field.|false|false",
            "input-required|Which repository?",
        ]
    );
    let data = artifact(&wire[2]).artifact.parts[0].as_data().unwrap();
    assert_eq!(data["user_input"], true);
    assert_eq!(data["input_title"], "New repository");
    assert_eq!(data["input_fields"][0]["field_name"], "repo");
}

#[test]
fn a_run_ends_in_one_status_whatever_happened() {
    let ends = [
        (Outcome::Failed { reason: "Agent execution failed: x".to_owned() }, TaskState::Failed),
        (Outcome::Canceled, TaskState::Canceled),
    ];
    for (outcome, state) in ends {
        let wire = bind([own(EventKind::Finished { outcome })]);
        let states: Vec<_> = wire.iter().filter_map(Event::state).collect();
        assert_eq!(states, [state]);
    }
}

#[test]
fn a_run_that_is_cut_off_ends_every_call_that_it_began() {
    let [start, _] = delegated("jira", CallEnd::Completed, "");
    let tool =
        |call: &str, tool: &str| EventKind::ToolStarted { call: call.to_owned(), tool: tool.to_owned() };
    let begun = || vec![start.clone(), of("jira", tool("c2", "get_issue")), own(tool("c3", "jq"))];
    for outcome in [Outcome::Canceled, Outcome::Failed { reason: "no".to_owned() }] {
        let wire = bind([begun(), vec![own(EventKind::Finished { outcome })]].concat());
        let texts: Vec<_> = wire[3..6].iter().map(|event| artifact(event).artifact.text()).collect();
        assert_eq!(texts, ["❌ Jira: Tool Get_Issue canceled\n", "❌ Jira: canceled\n", "❌ Jq: canceled\n"]);
        assert!(
            wire[6..].iter().all(|event| !line(event).starts_with("tool_")),
            "each once: {:?}",
            lines(&wire)
        );
    }
    let waits = own(EventKind::Finished { outcome: Outcome::InputRequired });
    assert_eq!(bind([begun(), vec![waits]].concat()).len(), 4, "what waits goes on");
}

#[test]
fn the_same_log_gives_the_same_events() {
    let log = || {
        let mut events = vec![text("I look. ", TextRole::Narration)];
        events.extend(delegated("jira", CallEnd::Completed, "3"));
        events.push(completed("done", AnswerOrigin::Structured));
        events
    };
    assert_eq!(bind(log()), bind(log()));
}
