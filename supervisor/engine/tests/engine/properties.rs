//! What holds whatever happens, in whatever order.

use std::collections::HashMap;
use std::sync::Arc;

use caipe_engine::{
    AnswerMode, BoundDecision, CallStatus, Decision, DelegateUpdate, DelegationOutcome, Effect, EventKind,
    Form, FormField, Input, ModelDelta, ModelFailure, Outcome, Phase, RemotePlace, RunEvent, RunState,
    TextRole, ToolOutput, decide,
};
use caipe_model::{FinishReason, Message, ModelErrorKind, Part, Role};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use crate::sim::{Sim, abilities, answer, completion, events, reloaded};

/// Something that may happen; what it refers to is chosen when it does.
#[derive(Debug, Clone)]
enum Happening {
    Say,
    Text(&'static str),
    Call(&'static str, &'static str),
    Arguments(&'static str, &'static str),
    Turn {
        text: &'static str,
        calls: Vec<(&'static str, &'static str, &'static str)>,
        cut: bool,
    },
    Failure(ModelErrorKind),
    Tool(Index, bool),
    UpdateKind(Index, UpdateKind),
    Decisions(Vec<Decision>),
    Undecided,
    Fewer(bool),
    Cancel,
    Recovered,
    Deadline,
    /// The next one comes for a turn or call that is not there.
    Stray(Box<Happening>),
}

#[derive(Debug, Clone)]
enum UpdateKind {
    Accepted,
    Checkpoint,
    Event,
    EventWithPosition,
    Asks,
    Done,
    Failed,
    Canceled,
}

const CALLS: [(&str, &str); 14] = [
    ("search", "{}"),
    ("search", "{\"q\":"),
    ("delete_app", "{}"),
    ("wait", "{\"seconds\":1}"),
    ("nothing", "{}"),
    ("task", r#"{"subagent_type":"jira","description":"look"}"#),
    ("task", r#"{"subagent_type":"GitHub","description":"look"}"#),
    ("task", r#"{"subagent_type":"nobody","description":"look"}"#),
    (
        "write_todos",
        r#"{"todos":[{"content":"[Jira] a","status":"in_progress"},{"content":"b","status":"pending"}]}"#,
    ),
    ("write_todos", r#"{"todos":[{"content":"[Jira] a","status":"completed"}]}"#),
    ("write_file", r#"{"file_path":"/a","content":"x"}"#),
    (
        "CAIPEAgentResponse",
        r#"{"response":"?","metadata":{"input_fields":[{"field_name":"a","required":true}]}}"#,
    ),
    ("ResponseFormat", r#"{"content":"The answer, at last."}"#),
    ("ResponseFormat", r#"{"content":"Which one?","require_user_input":true}"#),
];

fn call() -> impl Strategy<Value = (&'static str, &'static str, &'static str)> {
    (select(&["", "a", "b", "c", "d"][..]), select(&CALLS[..]))
        .prop_map(|(id, (name, arguments))| (id, name, arguments))
}

fn text() -> impl Strategy<Value = &'static str> {
    select(&["", "I look. ", "Nothing to see here. ", "[FINAL", " ANSWER]\nSo it is", "ä😀"][..])
}

fn decision() -> impl Strategy<Value = Decision> {
    prop_oneof![
        Just(Decision::Approve),
        Just(Decision::Reject { message: String::new() }),
        Just(Decision::Submit { values: [("a".to_owned(), "1".into())].into_iter().collect() }),
        Just(Decision::Edit { arguments: [("name".to_owned(), "1".into())].into_iter().collect() }),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let kinds = &[
        ModelErrorKind::Auth,
        ModelErrorKind::Overloaded,
        ModelErrorKind::ContextOverflow,
        ModelErrorKind::Transport,
        ModelErrorKind::Truncated,
    ][..];
    let kind = &[
        UpdateKind::Accepted,
        UpdateKind::Checkpoint,
        UpdateKind::Event,
        UpdateKind::EventWithPosition,
        UpdateKind::Asks,
        UpdateKind::Done,
        UpdateKind::Done,
        UpdateKind::Failed,
        UpdateKind::Canceled,
    ][..];
    let calls = proptest::collection::vec(call(), 0..4);
    let simple = prop_oneof![
        3 => Just(Happening::Say),
        4 => text().prop_map(Happening::Text),
        2 => call().prop_map(|(id, name, _)| Happening::Call(id, name)),
        2 => call().prop_map(|(id, _, arguments)| Happening::Arguments(id, arguments)),
        8 => (text(), calls, any::<bool>()).prop_map(|(text, calls, cut)| Happening::Turn { text, calls, cut }),
        1 => select(kinds).prop_map(Happening::Failure),
        8 => (any::<Index>(), any::<bool>()).prop_map(|(call, fails)| Happening::Tool(call, fails)),
        8 => (any::<Index>(), select(kind)).prop_map(|(call, kind)| Happening::UpdateKind(call, kind)),
        3 => proptest::collection::vec(decision(), 0..3).prop_map(Happening::Decisions),
        1 => Just(Happening::Undecided),
        1 => any::<bool>().prop_map(Happening::Fewer),
        1 => Just(Happening::Cancel),
        1 => Just(Happening::Recovered),
        1 => Just(Happening::Deadline),
    ];
    simple.prop_flat_map(|happening| {
        prop_oneof![9 => Just(happening.clone()), 1 => Just(Happening::Stray(Box::new(happening)))]
    })
}

fn input(happening: &Happening, sim: &Sim) -> Input {
    let turn = sim.turn();
    let call = |index: &Index| match sim.state.calls.as_slice() {
        [] => "x".to_owned(),
        calls => calls[index.index(calls.len())].id.clone(),
    };
    match happening {
        Happening::Say => {
            let message = Arc::new(Message::text(Role::User, "what now?"));
            Input::Message { message, abilities: sim.abilities.clone() }
        }
        Happening::Text(text) => {
            Input::ModelDelta { turn, delta: ModelDelta::Text { text: (*text).to_owned() } }
        }
        Happening::Call(id, name) => Input::ModelDelta {
            turn,
            delta: ModelDelta::CallStart { id: (*id).to_owned(), name: (*name).to_owned() },
        },
        Happening::Arguments(id, text) => Input::ModelDelta {
            turn,
            delta: ModelDelta::CallArguments { id: (*id).to_owned(), text: (*text).to_owned() },
        },
        Happening::Turn { text, calls, cut } => {
            let mut completion = completion(text, calls);
            completion.reason = if *cut { FinishReason::Length } else { FinishReason::Stop };
            Input::ModelFinished { turn, completion }
        }
        Happening::Failure(kind) => {
            Input::ModelFailed { turn, error: ModelFailure { kind: *kind, message: "broken".to_owned() } }
        }
        Happening::Tool(index, fails) => Input::ToolFinished {
            call: call(index),
            output: ToolOutput { content: "out".to_owned(), is_error: *fails, ..ToolOutput::default() },
            time_ms: 0,
        },
        Happening::UpdateKind(index, kind) => {
            Input::Delegate { call: call(index), update: update(kind, &sim.state) }
        }
        Happening::Decisions(decisions) => {
            let waiting = sim.waiting().into_iter().chain(std::iter::repeat(Form::default()));
            let about = |(call, decision): (Form, &Decision)| BoundDecision::about(&call, decision.clone());
            Input::Decided { decisions: waiting.zip(decisions).map(about).collect() }
        }
        Happening::Undecided => Input::Undecided { reason: "which?".to_owned() },
        Happening::Fewer(all) => {
            let mut abilities = sim.abilities.clone();
            if !all {
                abilities.tools.clear();
                abilities.agents.clear();
            }
            Input::Abilities { abilities }
        }
        Happening::Cancel => Input::Cancel,
        Happening::Recovered => Input::Recovered,
        Happening::Deadline => Input::Deadline,
        Happening::Stray(happening) => stray(input(happening, sim)),
    }
}

fn stray(input: Input) -> Input {
    let elsewhere = "elsewhere".to_owned();
    match input {
        Input::ModelDelta { turn, delta } => Input::ModelDelta { turn: turn.wrapping_add(1), delta },
        Input::ModelFinished { turn, completion } => {
            Input::ModelFinished { turn: turn.wrapping_sub(1), completion }
        }
        Input::ModelFailed { turn, error } => Input::ModelFailed { turn: turn.wrapping_sub(1), error },
        Input::ToolFinished { output, .. } => Input::ToolFinished { call: elsewhere, output, time_ms: 0 },
        Input::Delegate { update, .. } => Input::Delegate { call: elsewhere, update },
        other => other,
    }
}

fn update(kind: &UpdateKind, state: &RunState) -> DelegateUpdate {
    let finished = |outcome| DelegateUpdate::Finished { outcome };
    match kind {
        UpdateKind::Accepted => DelegateUpdate::Accepted { task: "t".to_owned(), context: "c".to_owned() },
        UpdateKind::Checkpoint => DelegateUpdate::Checkpoint {
            frame: Box::new(RunState::new(state.agent.clone())),
            events: vec![RunEvent::own(EventKind::TextReset)],
        },
        UpdateKind::EventWithPosition => DelegateUpdate::Event {
            event: RunEvent::own(EventKind::TextReset),
            place: Some(RemotePlace { seq: Some(3), shown: 1 }),
        },
        UpdateKind::Event => {
            DelegateUpdate::Event { event: RunEvent::own(EventKind::TextReset), place: None }
        }
        UpdateKind::Asks => {
            let field = FormField { field_name: "a".to_owned(), ..FormField::default() };
            DelegateUpdate::Asks { form: Form { fields: vec![field], ..Form::default() } }
        }
        UpdateKind::Done => finished(DelegationOutcome::Completed { text: "done".to_owned() }),
        UpdateKind::Failed => finished(DelegationOutcome::Failed { reason: "broken".to_owned() }),
        UpdateKind::Canceled => finished(DelegationOutcome::Canceled),
    }
}

/// Pieces of a turn are not saved: after a crash the turn is asked for again.
fn without_text(state: &RunState) -> RunState {
    RunState { text: caipe_engine::AnswerText::default(), ..state.clone() }
}

/// Every call has one result, right after the message that asked for it.
fn assert_whole(state: &RunState) {
    let mut open: Vec<String> = Vec::new();
    for message in &state.messages {
        if message.role == Role::Tool {
            for part in &message.parts {
                let Part::ToolResult(result) = part else { panic!("{part:?}") };
                let at = open.iter().position(|id| *id == result.call_id).expect("a result has its call");
                open.remove(at);
            }
        } else {
            assert_eq!(open, Vec::<String>::new(), "every call has its result");
            open = message.tool_calls().map(|call| call.id.clone()).collect();
        }
    }
    assert_eq!(open, Vec::<String>::new());
    let mut ids: Vec<&str> =
        state.messages.iter().flat_map(|message| message.tool_calls()).map(|call| call.id.as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "ids are unique");
}

/// Starts less ends, by call.
fn balance(effects: &[Effect]) -> HashMap<String, i32> {
    let mut balance = HashMap::new();
    for event in events(effects).into_iter().filter(|event| event.path.is_empty()) {
        let (call, change) = match event.kind {
            EventKind::ToolStarted { call, .. } | EventKind::DelegationStarted { call, .. } => (call, 1),
            EventKind::ToolFinished { call, .. } | EventKind::DelegationFinished { call, .. } => (call, -1),
            _ => continue,
        };
        *balance.entry(call).or_default() += change;
    }
    balance.retain(|_, count| *count != 0);
    balance
}

fn at_work(state: &RunState) -> HashMap<String, i32> {
    let started = |status: &CallStatus| {
        let status = if let CallStatus::Waiting { then, .. } = status { then } else { status };
        matches!(status, CallStatus::Running | CallStatus::Remote { .. } | CallStatus::Nested { .. })
    };
    state.calls.iter().filter(|call| started(&call.status)).map(|call| (call.id.clone(), 1)).collect()
}

fn is_over(phase: &Phase) -> bool {
    matches!(phase, Phase::Idle | Phase::Waiting)
}

fn check(sim: &Sim, before: &Phase, input: &Input, effects: &[Effect]) {
    assert_eq!(balance(&sim.all), at_work(&sim.state), "what was started is at work or has ended");
    let finishes = effects.iter().filter(|effect| **effect == Effect::Finish).count();
    let reported =
        events(effects).iter().filter(|event| matches!(event.kind, EventKind::Finished { .. })).count();
    assert_eq!(finishes, reported);
    assert!(finishes <= 1);
    if finishes == 1 {
        assert!(is_over(&sim.state.phase));
        assert_eq!(effects.last(), Some(&Effect::Finish));
    } else if !is_over(before) {
        assert!(!is_over(&sim.state.phase), "a run does not end in silence");
    }
    if *before == Phase::Idle && !matches!(input, Input::Message { .. }) {
        assert_eq!(effects, [], "nothing happens between runs");
    }
    if *before == Phase::Waiting
        && !matches!(
            input,
            Input::Message { .. } | Input::Decided { .. } | Input::Undecided { .. } | Input::Cancel
        )
    {
        assert_eq!(effects, [], "only a human ends the waiting");
    }
    for event in events(effects) {
        if let EventKind::Finished { outcome: Outcome::Completed { text, .. } } = event.kind {
            assert_ne!(text.trim(), "", "no run ends well without an answer");
        }
    }
    if let Input::Decided { decisions } = input
        && *before == Phase::Waiting
    {
        check_decisions(decisions, effects);
    }
    match &sim.state.phase {
        Phase::Idle => {
            assert_whole(&sim.state);
            assert_eq!(sim.state.calls, []);
        }
        Phase::Model { .. } => assert_whole(&sim.state),
        Phase::Calls => assert_ne!(sim.state.calls, []),
        Phase::Waiting => {
            assert!(sim.state.calls.iter().any(|call| matches!(call.status, CallStatus::Waiting { .. })));
        }
    }
}

/// A call runs after a decision only if there was one that lets it, and each lets one run.
fn check_decisions(decisions: &[BoundDecision], effects: &[Effect]) {
    let allowed =
        decisions.iter().filter(|bound| matches!(bound.decision, Decision::Approve | Decision::Edit { .. }));
    let run = effects.iter().filter(|effect| matches!(effect, Effect::CallTool { .. })).count();
    assert!(run <= allowed.count(), "{decisions:?} let {run} calls run");
}

fn live(mode: AnswerMode, small: bool, happenings: &[Happening]) {
    let mut abilities = abilities(mode);
    abilities.require_approval = vec!["delete_*".to_owned()];
    if small {
        abilities.limits.steps = 6;
        abilities.limits.context_tokens = 120;
        abilities.limits.keep_messages = 2;
        abilities.tools.remove("search");
        abilities.limits.tool_output_chars = 2;
    }
    let mut sim = Sim::new(abilities);
    let mut saved = reloaded(&sim.state);
    for happening in happenings {
        let input = input(happening, &sim);
        let before = sim.state.phase.clone();
        let mut twin = reloaded(&sim.state);
        let twin_effects = decide(&mut twin, input.clone());
        let effects = sim.feed(input.clone());
        assert_eq!((&effects, &sim.state), (&twin_effects, &twin), "the same inputs have the same effects");
        if input.changes_state() {
            saved = reloaded(&sim.state);
        }
        assert_eq!(without_text(&saved), without_text(&sim.state), "what is saved is what there is");
        check(&sim, &before, &input, &effects);
    }
    sim.feed(Input::Cancel);
    assert_eq!(balance(&sim.all), HashMap::new(), "every start has its end");
    assert_whole(&sim.state);
}

proptest! {
    #[test]
    fn whatever_happens(
        mode in select(&[AnswerMode::Structured, AnswerMode::Marker, AnswerMode::Plain][..]),
        small in any::<bool>(),
        happenings in proptest::collection::vec(happening(), 1..60),
    ) {
        live(mode, small, &happenings);
    }

    #[test]
    fn a_structured_answer_is_reported_whole_however_it_is_cut(content in content(), cuts in cuts(), escape in any::<bool>()) {
        let mut arguments = answer(&content);
        if escape {
            arguments = arguments.chars().map(|c| if c.is_ascii() { c.to_string() } else { escaped(c) }).collect();
        }
        let mut sim = Sim::new(abilities(AnswerMode::Structured));
        sim.say("hi");
        sim.call_start("r", "ResponseFormat");
        for piece in pieces(&arguments, &cuts) {
            sim.call_arguments("r", piece);
        }
        sim.model("", &[("r", "ResponseFormat", &arguments)]);
        prop_assert_eq!(reported(&sim, |_| true), if content.trim().is_empty() { String::new() } else { content });
    }

    #[test]
    fn marked_text_is_reported_whole_however_it_is_cut(before in content(), after in content(), marked in any::<bool>(), cuts in cuts()) {
        let text = if marked { format!("{before}[FINAL ANSWER]{after}") } else { before.clone() };
        let mut sim = Sim::new(abilities(AnswerMode::Marker));
        sim.say("hi");
        for piece in pieces(&text, &cuts) {
            sim.delta(piece);
        }
        sim.model(&text, &[]);
        prop_assert_eq!(reported(&sim, |role| role == TextRole::Narration), before);
        let answer = if marked { after.trim_start_matches(['\r', '\n']) } else { "" };
        prop_assert_eq!(reported(&sim, |role| role == TextRole::Answer), answer);
    }

    #[test]
    fn plain_text_is_reported_whole_however_it_is_cut(text in content(), cuts in cuts()) {
        let mut sim = Sim::new(abilities(AnswerMode::Plain));
        sim.say("hi");
        for piece in pieces(&text, &cuts) {
            sim.delta(piece);
        }
        sim.model(&text, &[]);
        prop_assert_eq!(reported(&sim, |role| role == TextRole::Plain), text);
    }
}

fn content() -> impl Strategy<Value = String> {
    proptest::string::string_regex("([a-z]{1,9}|[ \n\"\\\\*`.äß\u{1F600}\u{2028}\u{7}/]){0,60}")
        .expect("a valid pattern")
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    proptest::collection::vec(any::<Index>(), 0..30)
}

fn pieces<'a>(text: &'a str, cuts: &[Index]) -> Vec<&'a str> {
    let borders: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| borders[cut.index(borders.len())]).chain([0, text.len()]).collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

fn escaped(c: char) -> String {
    c.encode_utf16(&mut [0; 2]).iter().fold(String::new(), |text, unit| text + &format!("\\u{unit:04x}"))
}

/// The text of these roles since the last reset.
fn reported(sim: &Sim, role: impl Fn(TextRole) -> bool) -> String {
    sim.events().into_iter().fold(String::new(), |reported, event| match event.kind {
        EventKind::Text { text, role: of } if role(of) => reported + &text,
        EventKind::TextReset => String::new(),
        _ => reported,
    })
}
