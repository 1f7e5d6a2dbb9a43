#![expect(clippy::needless_pass_by_value, reason = "`json!` makes values")]

use caipe_a2a::model::Part;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::clean::is_harmless;
use super::*;

/// What is shown, a line each: `answer¶` begins a paragraph, `answer` continues it. `↺` replaces text.
fn lines(shows: &[ViewEvent]) -> Vec<String> {
    let presentation = |presentation: &Presentation| {
        if *presentation == Presentation::Answer { "answer" } else { "narration" }
    };
    let tell = |show: &ViewEvent| match show {
        ViewEvent::Plan { plan, changed } => {
            let steps = changed.iter().map(|place| plan.steps()[*place].line());
            format!("plan: {}", steps.collect::<Vec<_>>().join(" | "))
        }
        ViewEvent::Notice(notice) => format!("notice{}: {}", notice.depth, notice.text),
        ViewEvent::Text { presentation: who, text, fresh, replaces, .. } => {
            let mark = if *replaces { "↺" } else { "" };
            format!("{}{}{mark}: {text}", presentation(who), if *fresh { "¶" } else { "" })
        }
        ViewEvent::Doing(text) => format!("doing: {text}"),
        ViewEvent::File(file) => format!("file: {}", file.part.filename.as_deref().unwrap_or_default()),
        ViewEvent::Form(form) => format!("form: {} {}", form.title, form.description),
        ViewEvent::End(end) => format!("end: {end:?}"),
    };
    shows.iter().map(tell).collect()
}

fn fold(events: &[Event]) -> Vec<String> {
    let mut view = View::default();
    lines(&events.iter().flat_map(|event| view.apply(event)).collect::<Vec<_>>())
}

/// An event from its 1.0 JSON, in task `t` of context `c`.
fn event(json: Value) -> Event {
    serde_json::from_value(json).unwrap()
}

fn task(status: &str, artifacts: Value) -> Event {
    event(json!({"task": {"id": "t", "contextId": "c", "status": {"state": status}, "artifacts": artifacts}}))
}

fn status(state: &str, text: &str) -> Event {
    let mut status = json!({"state": state});
    if !text.is_empty() {
        status["message"] = json!({"messageId": text, "role": "ROLE_AGENT", "parts": [{"text": text}]});
    }
    event(
        json!({"statusUpdate": {"taskId": "t", "contextId": "c", "status": status, "metadata": {"trace_id": "f00"}}}),
    )
}

fn artifact(name: &str, id: &str, part: Value, metadata: Value, append: bool) -> Event {
    let artifact = json!({"artifactId": id, "name": name, "parts": [part], "metadata": metadata});
    event(
        json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact, "append": append}}),
    )
}

fn stream(id: &str, text: &str, append: bool) -> Event {
    artifact("streaming_result", id, json!({"text": text}), json!({}), append)
}

fn narrated(id: &str, text: &str, append: bool) -> Event {
    artifact("streaming_result", id, json!({"text": text}), json!({"is_narration": true}), append)
}

fn result(text: &str) -> Event {
    artifact("final_result", "final", json!({"text": text}), json!({"trace_id": "ba5"}), false)
}

fn sub_agent(name: &str, id: &str, text: &str) -> Event {
    artifact(name, id, json!({"text": text}), json!({"sourceAgent": "jira", "agentType": "sub-agent"}), false)
}

fn notification(name: &str, id: &str, text: &str) -> Event {
    artifact(name, id, json!({"text": text}), json!({"agentType": "notification"}), false)
}

fn form() -> Event {
    let field = json!({"field_name": "project", "required": true});
    let data = json!({"user_input": true, "input_title": "Ticket", "response": "Where to?", "input_fields": [field]});
    artifact("UserInputMetaData", "form", json!({"data": data}), json!({}), false)
}

const SUBMITTED: &str = "TASK_STATE_SUBMITTED";
const WORKING: &str = "TASK_STATE_WORKING";
const COMPLETED: &str = "TASK_STATE_COMPLETED";
const INPUT: &str = "TASK_STATE_INPUT_REQUIRED";

#[test]
fn a_supervisor_is_shown_from_plan_to_answer() {
    let steps = |first: &str| {
        json!({"data": {"steps": [
            {"step_id": "1", "title": "Search", "agent": "Jira", "status": first, "order": 0},
            {"step_id": "2", "title": "Sum up", "agent": "Supervisor", "status": "pending", "order": 1},
        ]}})
    };
    let shown = fold(&[
        task(SUBMITTED, json!([])),
        narrated("s", "I look ", false),
        narrated("s", "into it.", true),
        artifact("execution_plan_update", "p", steps("in_progress"), json!({}), false),
        notification("tool_notification_start", "n1", "🔧 Supervisor: Calling Agent Jira...\n"),
        sub_agent("tool_notification_start", "n2", "🔧 Jira: Calling tool: Get_Issue\n"),
        sub_agent("tool_notification_end", "n3", "✅ Jira: Tool Get_Issue completed\n"),
        sub_agent("complete_result", "r1", "Two issues."),
        artifact("execution_plan_status_update", "p", steps("completed"), json!({}), true),
        stream("s", "There are **t", true),
        stream("s", "wo** issues.", true),
        result("There are **two** issues."),
        status(COMPLETED, ""),
    ]);
    assert_eq!(
        shown,
        [
            "narration¶: I look ",
            "narration: into it.",
            "plan: 🔄 [Jira] Search | ⏳ Sum up",
            "notice0: 🔧 Supervisor: Calling Agent Jira...",
            "notice1: 🔧 Jira: Calling tool: Get_Issue",
            "notice1: ✅ Jira: Tool Get_Issue completed",
            "plan: ✅ [Jira] Search",
            "answer¶: There are **t",
            "answer: wo** issues.",
            "end: Completed",
        ]
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_answer_is_shown_once() {
    let done = || status(COMPLETED, "");
    for (case, events, expected) in [
        ("nothing streamed", vec![result("All."), done()], vec!["answer¶: All."]),
        (
            "streamed as a whole",
            vec![stream("s", "All.", false), result("All.\n"), done()],
            vec!["answer¶: All."],
        ),
        (
            "streamed in part",
            vec![stream("s", "Al", false), result("All."), done()],
            vec!["answer¶: Al", "answer: l."],
        ),
        (
            "another text",
            vec![stream("s", "I look.", false), result("All."), done()],
            vec!["answer¶: I look.", "answer¶: All."],
        ),
        (
            "partial result",
            vec![artifact("partial_result", "p", json!({"text": "Some."}), json!({}), false), done()],
            vec!["answer¶: Some."],
        ),
        (
            "only an agent's result",
            vec![sub_agent("complete_result", "r", "Two."), done()],
            vec!["answer¶: Two."],
        ),
        (
            "an agent's result and an answer",
            vec![sub_agent("complete_result", "r", "Two."), stream("s", "In sum: two.", false), done()],
            vec!["answer¶: In sum: two."],
        ),
        (
            "an agent asked directly",
            vec![
                stream("s", "Two.", false),
                artifact("complete_result", "r", json!({"text": "Two."}), json!({}), false),
                done(),
            ],
            vec!["answer¶: Two."],
        ),
        (
            "an older agent: status texts",
            vec![
                status(WORKING, "🔧 Calling tool: **version**"),
                status(WORKING, "The version is 2."),
                artifact("current_result", "m", json!({"text": ""}), json!({}), false),
                done(),
            ],
            vec![
                "notice0: 🔧 Calling tool: version",
                "doing: The version is 2.",
                "answer¶: The version is 2.",
            ],
        ),
        (
            "notes on the way, answer in the status",
            vec![status(WORKING, "Reading."), status(WORKING, "Thinking."), status(COMPLETED, "42.")],
            vec![
                "doing: Reading.",
                "narration¶: Reading.",
                "doing: Thinking.",
                "narration¶: Thinking.",
                "answer¶: 42.",
            ],
        ),
        (
            "the model begins anew",
            vec![stream("s1", "Wro", false), stream("s2", "Right.", false), result("Right."), done()],
            vec!["answer¶: Wro", "answer¶: Right."],
        ),
        (
            "replaced under the same id",
            vec![stream("s", "Wrong", false), stream("s", "Right.", false), done()],
            vec!["answer¶: Wrong", "answer¶↺: Right."],
        ),
        (
            "started again and repeated",
            vec![
                stream("s", "Hello ", false),
                stream("s", "", false),
                stream("s", "Hello ", true),
                stream("s", "you.", true),
                done(),
            ],
            vec!["answer¶: Hello ", "answer: you."],
        ),
        (
            "started again with another answer",
            vec![
                stream("s", "Hello ", false),
                stream("s", "", false),
                stream("s", "Good ", true),
                stream("s", "day.", true),
                done(),
            ],
            vec!["answer¶: Hello ", "answer¶↺: Good ", "answer: day."],
        ),
        (
            "started again with a shorter answer",
            vec![
                stream("s", "Hello world", false),
                stream("s", "", false),
                stream("s", "Hello", true),
                result("Hello"),
                done(),
            ],
            vec!["answer¶: Hello world", "answer¶↺: Hello"],
        ),
    ] {
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.push("end: Completed".to_owned());
        assert_eq!(fold(&events), expected, "{case}");
    }
}

#[test]
fn foreign_agents_are_understood() {
    let message =
        event(json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "contextId": "c", "parts": [
            {"text": "Hello."}, {"data": {"n": 1}}, {"url": "https://a.b/r.pdf", "filename": "r.pdf"},
        ]}}));
    assert_eq!(
        fold(&[message]),
        [
            "answer¶: Hello.\n\n```json\n{\n  \"n\": 1\n}\n```\n\n\n📎 r.pdf: https://a.b/r.pdf",
            "file: r.pdf",
            "end: Completed"
        ]
    );
    let artifacts = json!([
        {"artifactId": "a", "parts": [{"text": "One."}]},
        {"artifactId": "b", "name": "report", "parts": [{"raw": "AAAA", "mediaType": "image/png"}]},
    ]);
    let expected = ["answer¶: One.", "file: ", "answer¶: 📎 image/png (3 bytes)", "end: Completed"];
    assert_eq!(fold(&[task(COMPLETED, artifacts)]), expected, "a task as the only answer");
}

#[test]
fn a_file_is_shown_once() {
    let report = |raw: &str| json!({"raw": raw, "filename": "r.csv"});
    let files = fold(&[
        artifact("report", "a", report("AAAA"), json!({}), false),
        artifact("report", "a", report("BBBB"), json!({}), true),
        task(
            WORKING,
            json!([{"artifactId": "a", "name": "report", "parts": [report("AAAA"), report("BBBB")]}]),
        ),
        artifact("final_result", "b", report("AAAA"), json!({}), false),
        artifact("execution_plan_update", "c", report("CCCC"), json!({}), false),
        status(COMPLETED, ""),
    ]);
    assert_eq!(files.iter().filter(|line| *line == "file: r.csv").count(), 2, "{files:#?}");
}

#[test]
fn the_end_tells_how_and_why() {
    let error = || artifact("error_result", "e", json!({"text": "no token"}), json!({}), false);
    for (events, expected) in [
        (vec![status("TASK_STATE_FAILED", "It broke.")], "end: Failed(\"It broke.\")"),
        (vec![status("TASK_STATE_REJECTED", "Not me.")], "end: Failed(\"Not me.\")"),
        (vec![error(), status("TASK_STATE_FAILED", "")], "end: Failed(\"no token\")"),
        (vec![error(), status(COMPLETED, "")], "end: Failed(\"no token\")"),
        (
            vec![status("TASK_STATE_FAILED", "")],
            "end: Failed(\"the agent says \\\"failed\\\" and gives no reason\")",
        ),
        (vec![status("TASK_STATE_CANCELED", "")], "end: Canceled"),
    ] {
        assert_eq!(fold(&events), [expected]);
    }
}

#[test]
fn after_the_end_nothing_is_shown() {
    assert_eq!(
        fold(&[status(COMPLETED, ""), stream("s", "more", false), status("TASK_STATE_FAILED", "")]),
        ["end: Completed"]
    );
}

#[test]
fn a_question_is_asked_once() {
    for (case, events, expected) in [
        ("with a form", vec![form(), status(INPUT, "Where to?")], vec!["form: Ticket Where to?"]),
        (
            "told before as a status",
            vec![status(WORKING, "Where to?"), form(), status(INPUT, "Where to?")],
            vec!["doing: Where to?", "form: Ticket Where to?"],
        ),
        (
            "told before as the answer",
            vec![result("Where to?"), form(), status(INPUT, "Where to?")],
            vec!["answer¶: Where to?", "form: Ticket "],
        ),
        ("in words", vec![status(INPUT, "Which one?")], vec!["form:  Which one?"]),
        ("for credentials", vec![status("TASK_STATE_AUTH_REQUIRED", "Log in.")], vec!["form:  Log in."]),
    ] {
        let mut expected: Vec<String> = expected.into_iter().map(str::to_owned).collect();
        expected.push("end: InputRequired".to_owned());
        assert_eq!(fold(&events), expected, "{case}");
    }
}

#[test]
fn a_task_goes_on_after_its_question() {
    let mut view = View::default();
    for event in [stream("s", "First.", false), form(), status(INPUT, "Where to?")] {
        view.apply(&event);
    }
    assert_eq!(view.end(), Some(&End::InputRequired));
    view.resume();
    // The stream of an answer begins with the task as it was.
    let question = json!({"messageId": "Where to?", "role": "ROLE_AGENT", "parts": [{"text": "Where to?"}]});
    let Event::ArtifactUpdate(asked) = form() else { panic!() };
    let first = json!({"artifactId": "s", "name": "streaming_result", "parts": [{"text": "First."}]});
    let snapshot = event(json!({"task": {
        "id": "t", "contextId": "c",
        "status": {"state": INPUT, "message": question, "timestamp": "2030-01-01T00:00:00.000Z"},
        "artifacts": [first, asked.artifact],
    }}));
    assert_eq!(lines(&view.apply(&snapshot)), Vec::<String>::new());
    let rest = [stream("s2", "Second.", false), status(COMPLETED, "")];
    let shows: Vec<ViewEvent> = rest.iter().flat_map(|event| view.apply(event)).collect();
    assert_eq!(lines(&shows), ["answer¶: Second.", "end: Completed"]);
}

#[test]
fn a_snapshot_tells_only_what_is_new() {
    let notice = json!({"artifactId": "n", "name": "tool_notification_start", "parts": [{"text": "🔧 a"}]});
    let text = json!({"artifactId": "s", "name": "streaming_result", "parts": [{"text": "One two"}]});
    let shown = fold(&[
        notification("tool_notification_start", "n", "🔧 a"),
        stream("s", "One", false),
        task(WORKING, json!([notice, text])),
        stream("s", " three", true),
        status(COMPLETED, ""),
    ]);
    assert_eq!(shown, ["notice0: 🔧 a", "answer¶: One", "answer:  two", "answer:  three", "end: Completed"]);
}

#[test]
fn ids_and_trace_are_stored() {
    let mut view = View::default();
    view.apply(&task(SUBMITTED, json!([])));
    assert_eq!((view.task(), view.context(), view.trace()), (Some("t"), Some("c"), None));
    view.apply(&result("x"));
    assert_eq!(view.trace(), Some("ba5"));
}

fn any_event() -> impl Strategy<Value = Event> {
    let text = "[a-b \u{1b}\u{9b}\u{202e}\\[\\]m🔧✅\n]{0,12}";
    let name = prop::sample::select(vec![
        "streaming_result",
        "final_result",
        "partial_result",
        "complete_result",
        "error_result",
        "current_result",
        "tool_notification_start",
        "tool_notification_end",
        "UserInputMetaData",
        "execution_plan_update",
        "execution_plan_status_update",
        "something else",
    ]);
    let state = prop::sample::select(vec![
        SUBMITTED,
        WORKING,
        INPUT,
        COMPLETED,
        "TASK_STATE_FAILED",
        "TASK_STATE_CANCELED",
    ]);
    let artifacts = (name, "[a-c]", text, any::<(bool, bool, bool)>()).prop_map(
        |(name, id, text, (append, narration, data))| {
            let part = if data {
                json!({"data": {
                    "user_input": true, "input_title": text, "response": text, "action_name": text,
                    "input_fields": [{"field_name": text, "field_description": text}],
                    "steps": [{"step_id": id, "title": text, "agent": text, "status": "in_progress"}],
                }})
            } else {
                json!({"text": text})
            };
            artifact(
                name,
                &id,
                part,
                json!({"is_narration": narration, "agentType": if append { "sub-agent" } else { "" }}),
                append,
            )
        },
    );
    let statuses = (state, text).prop_map(|(state, text)| status(state, &text));
    prop_oneof![8 => artifacts, 1 => statuses]
}

proptest! {
    /// Whatever comes, it is safe for a terminal, and the end is shown at most once, last.
    #[test]
    fn any_events_are_safe_to_show(events in prop::collection::vec(any_event(), 0..20)) {
        let mut view = View::default();
        let shows: Vec<ViewEvent> = events.iter().flat_map(|event| view.apply(event)).collect();
        for show in &shows {
            for line in lines(std::slice::from_ref(show)) {
                prop_assert!(line.chars().all(is_harmless), "{:?}", line);
            }
        }
        let ends = shows.iter().filter(|show| matches!(show, ViewEvent::End(_))).count();
        prop_assert!(ends <= 1 && (ends == 0 || matches!(shows.last(), Some(ViewEvent::End(_)))));
    }

    /// However an answer is cut, broken off and told again, its text is shown once.
    #[test]
    fn an_answer_survives_its_way(words in prop::collection::vec("[a-z]{1,6} ?", 1..12), broken in 0_usize..12, repeated in any::<bool>()) {
        let text = words.concat();
        let mut events = vec![task(SUBMITTED, json!([]))];
        for (place, word) in words.iter().enumerate() {
            events.push(stream("s", word, place > 0));
            if place == broken {
                let parts = vec![Part::text(words[..=place].concat())];
                events.push(task(WORKING, json!([Artifact::new("s", "streaming_result", parts)])));
            }
        }
        events.extend(repeated.then(|| result(&text)));
        events.push(status(COMPLETED, ""));
        let mut view = View::default();
        let shown: String = events.iter().flat_map(|event| view.apply(event)).filter_map(|show| match show {
            ViewEvent::Text { text, .. } => Some(text),
            _ => None,
        }).collect();
        prop_assert_eq!(shown, text);
    }
}
