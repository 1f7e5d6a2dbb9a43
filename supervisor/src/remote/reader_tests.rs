//! Streams of agents of every generation, read.

#![allow(
    clippy::needless_pass_by_value,
    reason = "`json!` borrows what it is given; tests read better without `&`"
)]

use caipe_a2a::model::AgentExtension;
use serde_json::{Value, json};

use super::*;
use crate::binding::ACTIVITY_EXTENSION;

fn reader() -> Reader {
    let card = AgentCard { name: "ArgoCD Agent".to_owned(), ..AgentCard::default() };
    Reader::new(&AgentName::new("argocd"), &card, "c")
}

fn event(event: Value) -> StreamEvent {
    serde_json::from_value::<Event>(event).unwrap().into()
}

fn numbered(seq: u64, value: Value) -> StreamEvent {
    StreamEvent { seq: Some(seq), ..event(value) }
}

fn status(state: &str, text: &str) -> Value {
    let message =
        json!({"messageId": format!("{state}{text}"), "role": "ROLE_AGENT", "parts": [{"text": text}]});
    let message = if text.is_empty() { Value::Null } else { message };
    json!({"statusUpdate": {"taskId": "t", "status": {"state": format!("TASK_STATE_{state}"), "message": message}}})
}

fn part(id: &str, name: &str, description: &str, text: &str, metadata: Value) -> Value {
    json!({"artifactId": id, "name": name, "description": description, "parts": [{"text": text}], "metadata": metadata})
}

fn update(artifact: Value, append: bool) -> Value {
    json!({"artifactUpdate": {"taskId": "t", "artifact": artifact, "append": append}})
}

fn sub_agent(source: &str) -> Value {
    json!({"sourceAgent": source, "agentType": "sub-agent"})
}

fn typed(facts: Value, source: &str, kind: &str) -> Value {
    json!({"sourceAgent": source, "agentType": kind, ACTIVITY_EXTENSION: facts})
}

/// One line for each update: the path, then the event.
fn lines(updates: Vec<DelegateUpdate>) -> Vec<String> {
    updates.into_iter().map(line).collect()
}

fn line(update: DelegateUpdate) -> String {
    let DelegateUpdate::Event { event, .. } = update else { panic!("{update:?}") };
    let path: Vec<&str> = event.path.iter().map(AgentName::as_str).chain([""]).collect();
    let text = match event.kind {
        EventKind::ToolStarted { call, tool } => format!("{tool} starts ({call})"),
        EventKind::ToolFinished { call, tool, end, output } => {
            format!(
                "{tool} {end:?} ({call}){}",
                output.map(|output| format!(": {output}")).unwrap_or_default()
            )
        }
        EventKind::DelegationStarted { call, agent } => format!("asks {agent} ({call})"),
        EventKind::DelegationFinished { call, agent, end, .. } => format!("{agent} {end:?} ({call})"),
        EventKind::Noticed { text, end } => format!("says {text} {end:?}"),
        other => panic!("{other:?}"),
    };
    path.join("/") + &text
}

fn read(reader: &mut Reader, events: impl IntoIterator<Item = Value>) -> Vec<String> {
    events.into_iter().flat_map(|value| lines(reader.read(event(value)))).collect()
}

#[test]
fn the_older_generation_speaks_in_its_status() {
    let mut reader = reader();
    let lines = read(
        &mut reader,
        [
            json!({"task": {"id": "t", "contextId": "k", "status": {"state": "TASK_STATE_SUBMITTED"}}}),
            status("WORKING", "🔧 Calling tool: **version_service__version**"),
            status("WORKING", "✅ Tool **version_service__version** completed"),
            status("WORKING", "Argo CD is at v2.13 ✅"),
            update(json!({"artifactId": "r", "name": "current_result", "parts": []}), false),
            status("COMPLETED", ""),
        ],
    );
    assert_eq!(lines, ["version_service__version starts (c.1)", "version_service__version Completed (c.1)"]);
    assert_eq!(reader.end(), Some(&End::Completed));
    assert_eq!(reader.answer().text().as_deref(), Some("Argo CD is at v2.13 ✅"));
}

#[test]
fn the_newer_generation_speaks_in_artifacts() {
    let mut reader = reader();
    let start = part(
        "1",
        "tool_notification_start",
        "Tool call started: get_app",
        "🔧 Argocd: Calling tool: Get_App\n",
        sub_agent("argocd"),
    );
    let end = part(
        "2",
        "tool_notification_end",
        "Tool call failed: get_app",
        "❌ Argocd: Tool Get_App failed\n",
        sub_agent("argocd"),
    );
    let lines = read(
        &mut reader,
        [
            update(start, false),
            update(
                part("3", "tool_output", "", "📄 Argocd: Tool output:\nno such app\n\n", sub_agent("argocd")),
                false,
            ),
            update(end, false),
            update(part("4", "streaming_result", "", "It is ", sub_agent("argocd")), false),
            // Some leave `append` out.
            update(part("4", "streaming_result", "", "fine.", sub_agent("argocd")), false),
            update(part("4", "streaming_result", "", "", sub_agent("argocd")), true),
        ],
    );
    assert_eq!(lines, ["get_app starts (c.1)", "get_app Failed (c.1): no such app"]);
    assert_eq!(reader.answer().text().as_deref(), Some("It is fine."));
    read(
        &mut reader,
        [
            update(part("5", "complete_result", "", "It is fine.", sub_agent("argocd")), false),
            status("COMPLETED", ""),
        ],
    );
    assert_eq!(reader.answer().text().as_deref(), Some("It is fine."), "once");
}

#[test]
fn calls_of_the_same_tool_at_once_keep_their_own_ends() {
    let mut reader = reader();
    let lines = read(
        &mut reader,
        [
            status("WORKING", "🔧 Calling tool: get 1").clone(),
            status("WORKING", "🔧 Argocd: Calling tool: get"),
            status("WORKING", "🔧 Argocd: Calling tool: get "),
            status("WORKING", "✅ Argocd: Tool get completed"),
            status("WORKING", "❌ Argocd: Tool get failed"),
        ],
    );
    assert_eq!(
        lines[1..],
        ["get starts (c.1)", "get starts (c.2)", "get Completed (c.1)", "get Failed (c.2)"]
    );
    assert!(reader.close(CallEnd::Failed).is_empty());
}

#[test]
fn facts_count_before_names_and_names_before_signs() {
    let mut reader = reader();
    let facts = |event: &str, status: &str| {
        let call = "x";
        json!({"event": event, "agent": "argocd", "tool": "get_app", "callId": call, "status": status})
    };
    let lines = read(
        &mut reader,
        [
            update(
                part(
                    "1",
                    "tool_notification_start",
                    "",
                    "",
                    typed(facts("tool_start", "running"), "argocd", "sub-agent"),
                ),
                false,
            ),
            update(
                part(
                    "2",
                    "tool_output",
                    "",
                    "📄 Argocd: Tool output:\nout",
                    typed(facts("tool_output", "running"), "argocd", "sub-agent"),
                ),
                false,
            ),
            update(
                part(
                    "3",
                    "tool_notification_end",
                    "Tool call completed: other",
                    "✅ ",
                    typed(facts("tool_end", "canceled"), "argocd", "sub-agent"),
                ),
                false,
            ),
        ],
    );
    assert_eq!(lines, ["get_app starts (x)", "get_app Canceled (x): out"]);
    assert!(reader.is_ours());
}

#[test]
fn agents_that_the_agent_calls_are_distinguished_from_it() {
    let facts = |event: &str, agent: &str, path: Value| {
        let (call, status) = ("x", "running");
        json!({"event": event, "agent": agent, "tool": "get", "callId": call, "status": status, "path": path})
    };
    let start = |id: &str, facts: Value, source: &str, kind: &str| {
        update(part(id, "tool_notification_start", "", "", typed(facts, source, kind)), false)
    };
    // One of ours, with the path down.
    let lines = read(
        &mut reader(),
        [
            start("1", facts("agent_start", "deeper", json!([])), "argocd", "sub-agent"),
            start("2", facts("tool_start", "deeper", json!(["deeper"])), "deeper", "sub-agent"),
            start("3", facts("tool_start", "deepest", json!(["deeper", "deepest"])), "deepest", "sub-agent"),
            start("4", facts("agent_end", "deeper", json!([])), "argocd", "sub-agent"),
        ],
    );
    assert_eq!(
        lines,
        ["asks deeper (x)", "deeper/get starts (x)", "deeper/deepest/get starts (x)", "deeper Completed (x)"]
    );
    // A supervisor, which names whose tool it is.
    let lines = read(
        &mut reader(),
        [
            start("1", json!({"event": "tool_start", "tool": "jq", "callId": "j"}), "jq", "notification"),
            start("2", facts("agent_start", "jira", json!([])), "jira", "notification"),
            start("3", facts("tool_start", "jira", json!([])), "jira", "sub-agent"),
        ],
    );
    assert_eq!(lines, ["jq starts (j)", "asks jira (x)", "jira/get starts (x)"]);
    // Of another agent, by the source.
    let nested = part(
        "1",
        "tool_notification_start",
        "Tool call started: get",
        "🔧 Jira: Calling tool: Get",
        sub_agent("jira"),
    );
    assert_eq!(read(&mut reader(), [update(nested, false)]), ["jira/get starts (c.1)"]);
}

#[test]
fn a_supervisor_as_an_agent_answers_once() {
    let mut reader = reader();
    let result =
        |id: &str, name: &str, text: &str, metadata: Value| update(part(id, name, "", text, metadata), false);
    let lines = read(
        &mut reader,
        [
            update(
                part(
                    "0",
                    "tool_notification_start",
                    "Tool call started: look",
                    "🔧 Workflow: Calling look...\n",
                    json!({"agentType": "notification", "sourceAgent": "look"}),
                ),
                false,
            ),
            update(
                part(
                    "1",
                    "tool_notification_end",
                    "Tool call completed: get",
                    "raw output",
                    json!({"agentType": "notification", "sourceAgent": "get"}),
                ),
                false,
            ),
            result("2", "complete_result", "jira's own", sub_agent("jira")),
            result("3", "streaming_result", "in sum", json!({})),
            result("4", "final_result", "in sum: 3", json!({"trace_id": "0"})),
            result("5", "execution_plan_update", "", json!({})),
        ],
    );
    assert_eq!(lines, ["says 🔧 Workflow: Calling look... None"]);
    assert_eq!(reader.answer().text().as_deref(), Some("in sum: 3"));
}

#[test]
fn a_sign_in_the_middle_of_an_answer_is_no_notification() {
    let mut reader = reader();
    let answer = "Steps: 🔧 Calling tool: x, then ✅ Tool x completed";
    let lines =
        read(&mut reader, [status("WORKING", answer), update(part("1", "", "", answer, json!(null)), false)]);
    assert_eq!(lines, [""; 0]);
    assert_eq!(reader.answer().text().as_deref(), Some(answer));
}

fn notification(id: &str, tool: &str) -> Value {
    part(id, "tool_notification_start", &format!("Tool call started: {tool}"), "🔧 x", sub_agent("argocd"))
}

fn task(artifacts: Value, state: &str) -> Value {
    json!({"task": {"id": "t", "contextId": "k", "status": {"state": format!("TASK_STATE_{state}")}, "artifacts": artifacts,
        "history": [{"messageId": "h", "role": "ROLE_AGENT", "parts": [{"text": "🔧 Calling tool: spoken"}]}]}})
}

#[test]
fn a_repeated_task_gives_only_what_was_missed() {
    let mut reader = reader();
    read(
        &mut reader,
        [
            update(notification("1", "one"), false),
            status("WORKING", "🔧 Calling tool: spoken"),
            update(part("p", "streaming_result", "", "half ", json!(null)), false),
        ],
    );
    let mut whole = task(
        json!([
            notification("1", "one"),
            part("p", "streaming_result", "", "half and half", json!(null)),
            notification("2", "two")
        ]),
        "WORKING",
    );
    whole["task"]["history"][0]["messageId"] = json!("WORKING🔧 Calling tool: spoken");
    assert_eq!(read(&mut reader, [whole.clone()]), ["two starts (c.3)"]);
    assert_eq!(read(&mut reader, [whole]), [""; 0]);
    assert_eq!(reader.answer().text().as_deref(), Some("half and half"), "not two and a half");
}

#[test]
fn who_takes_over_tells_nothing_again() {
    let artifacts =
        || json!([notification("1", "one"), notification("2", "two"), notification("3", "three")]);
    let mut counted = reader().from(RemotePlace { seq: None, shown: 2 }, false);
    assert_eq!(
        read(&mut counted, [task(artifacts(), "WORKING")]),
        ["three starts (c.3)", "spoken starts (c.4)"]
    );
    assert_eq!(read(&mut counted, [update(notification("5", "five"), false)]), ["five starts (c.5)"]);

    // An agent that numbers its events tells first how its task was at the number that it was asked for.
    let mut known = reader().from(RemotePlace { seq: Some(7), shown: 1 }, false);
    assert_eq!(lines(known.read(numbered(7, task(artifacts(), "WORKING")))), [""; 0]);
    let updates = known.read(numbered(8, update(notification("4", "four"), false)));
    let [DelegateUpdate::Event { place: Some(place), .. }] = &updates[..] else { panic!("{updates:?}") };
    assert_eq!(*place, RemotePlace { seq: Some(8), shown: 2 });
}

#[test]
fn what_was_begun_is_ended_once() {
    let mut reader = reader();
    read(&mut reader, [update(notification("1", "one"), false), update(notification("2", "two"), false)]);
    read(&mut reader, [status("WORKING", "✅ Tool one completed")]);
    assert_eq!(lines(reader.close(CallEnd::Failed)), ["two Failed (c.2)"]);
    assert_eq!(lines(reader.close(CallEnd::Failed)), [""; 0]);
}

#[test]
fn a_question_is_read_and_one_that_was_answered_is_not_asked_again() {
    let form = |id: &str, question: &str| {
        let data =
            json!({"user_input": true, "response": question, "action_name": "delete", "input_fields": []});
        json!({"artifactId": id, "name": "UserInputMetaData", "parts": [{"data": data}]})
    };
    let questions = |reader: &mut Reader| -> Vec<String> {
        reader.forms().into_iter().map(|form| form.description).collect()
    };
    let mut first = reader();
    read(&mut first, [update(form("1", "Really?"), false), status("INPUT_REQUIRED", "Really?")]);
    assert_eq!(first.end(), Some(&End::Asks(Some("Really?".to_owned()))));
    assert_eq!(questions(&mut first), ["Really?"]);

    let mut next = reader().from(RemotePlace::default(), true);
    read(&mut next, [task(json!([form("1", "Really?")]), "INPUT_REQUIRED")]);
    assert_eq!(next.end(), None, "that was before the answer");
    read(&mut next, [update(form("2", "And this?"), false), status("INPUT_REQUIRED", "And this?")]);
    assert_eq!(questions(&mut next), ["And this?"]);
    read(&mut next, [task(json!([form("1", "Really?"), form("2", "And this?")]), "INPUT_REQUIRED")]);
    assert_eq!(questions(&mut next), ["And this?"]);
}

#[test]
fn each_state_is_an_end_or_none() {
    let why = || Some("why".to_owned());
    for (state, end) in [
        ("SUBMITTED", None),
        ("WORKING", None),
        ("COMPLETED", Some(End::Completed)),
        ("FAILED", Some(End::Failed(why()))),
        ("CANCELED", Some(End::Canceled)),
        ("REJECTED", Some(End::Rejected(why()))),
        ("INPUT_REQUIRED", Some(End::Asks(why()))),
        ("AUTH_REQUIRED", Some(End::WantsCredentials(why()))),
    ] {
        let mut reader = reader();
        read(&mut reader, [status(state, "why")]);
        assert_eq!(reader.end(), end.as_ref(), "{state}");
    }
    let mut reader = reader();
    read(
        &mut reader,
        [json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "at once"}]}})],
    );
    assert_eq!((reader.end(), reader.answer().text().as_deref()), (Some(&End::Completed), Some("at once")));
}

#[test]
fn a_card_that_declares_our_extension_is_ours() {
    let mut card = AgentCard::default();
    card.capabilities.extensions =
        vec![AgentExtension { uri: ACTIVITY_EXTENSION.to_owned(), ..AgentExtension::default() }];
    assert!(Reader::new(&AgentName::new("a"), &card, "c").is_ours());
    assert!(!reader().is_ours());
}

fn asked(id: &str, call: &str, arguments: &Value) -> Value {
    json!({
        "artifactId": id, "name": "client_tool_call", "metadata": sub_agent("argocd"),
        "parts": [{ "data": { "call": call, "tool": "memory_save", "arguments": arguments } }],
    })
}

fn ended(call: &str) -> Value {
    let facts = json!({ "event": "tool_end", "tool": "memory_save", "callId": call, "status": "completed" });
    part(&format!("end-{call}"), "tool_notification_end", "", "", typed(facts, "argocd", "sub-agent"))
}

/// The calls that a reader has for its process after these artifacts.
fn calls_after(reader: &mut Reader, artifacts: &[Value]) -> Vec<String> {
    for artifact in artifacts {
        reader.read(event(update(artifact.clone(), false)));
    }
    reader.client_calls().into_iter().map(|asked| asked.call).collect()
}

/// Each once, also where the task is read again and again. A process that takes over reads the whole task.
#[test]
fn the_calls_for_this_process_are_those_without_a_result() {
    let fact = json!({ "fact": "x" });
    let mut ours = reader().answering_calls(true);
    assert!(calls_after(&mut ours, &[asked("0", "a", &fact)]).is_empty(), "of another program");
    assert_eq!(calls_after(&mut ours, &[ended("z"), asked("1", "a", &fact)]), ["a"]);
    assert!(calls_after(&mut ours, &[ended("a")]).is_empty());
    assert_eq!(
        calls_after(&mut ours, &[asked("2", "a", &fact)]),
        ["a"],
        "an agent that has restarted asks again"
    );

    let artifacts =
        [ended("z"), asked("1", "a", &fact), ended("a"), asked("2", "b", &fact), asked("3", "b", &fact)];
    let status = json!({ "state": "TASK_STATE_WORKING" });
    let task = json!({ "task": { "id": "t", "contextId": "c", "status": status, "artifacts": artifacts } });
    let mut late = reader().answering_calls(true);
    late.read(event(task.clone()));
    assert_eq!(calls_after(&mut late, &[]), ["b"]);
    for reader in [&mut late, &mut ours] {
        reader.read(event(task.clone()));
    }
    assert!(calls_after(&mut late, &[]).is_empty(), "it was answered");
    assert_eq!(calls_after(&mut ours, &[]), ["b"], "what is new in the whole task");
}

#[test]
fn calls_for_this_process_are_bounded() {
    let (fact, large) = (json!({ "fact": "x" }), json!({ "fact": "x".repeat(CLIENT_CALL_BYTES) }));
    let mut unasked = reader();
    calls_after(&mut unasked, &[ended("z")]);
    assert!(
        calls_after(&mut unasked, &[asked("1", "a", &fact)]).is_empty(),
        "it answers no calls of this agent"
    );
    let mut ours = reader().answering_calls(true);
    calls_after(&mut ours, &[ended("z")]);
    let long = "c".repeat(CLIENT_CALL_NAME + 1);
    assert!(calls_after(&mut ours, &[asked("1", "a", &large), asked("2", &long, &fact)]).is_empty());
    let many: Vec<Value> =
        (0..=MOST_CLIENT_CALLS).map(|at| asked(&format!("n{at}"), &format!("n{at}"), &fact)).collect();
    assert_eq!(calls_after(&mut ours, &many).len(), MOST_CLIENT_CALLS);
}
