//! Whatever a run tells, in whatever order: what holds of the stream that a client sees.

use std::collections::BTreeSet;

use caipe_a2a::model::{Event, TaskArtifactUpdateEvent, TaskState};
use caipe_a2a::server::Addition;
use caipe_engine::{
    AgentName, AnswerOrigin, CallEnd, EventKind, Form, Outcome, PlanCause, PlanStep, RunEvent, StepStatus,
    TextRole,
};
use proptest::prelude::*;
use proptest::sample::select;

use super::{Binding, Presentation};

fn ends() -> impl Strategy<Value = CallEnd> {
    select(vec![CallEnd::Completed, CallEnd::Failed, CallEnd::Canceled])
}

fn call() -> impl Strategy<Value = String> {
    select(vec!["c1", "c2", "c3"]).prop_map(str::to_owned)
}

fn agent() -> impl Strategy<Value = AgentName> {
    select(vec!["jira", "github"]).prop_map(AgentName::new)
}

fn tool() -> impl Strategy<Value = String> {
    select(vec!["search", "get_issue", "jq"]).prop_map(str::to_owned)
}

fn calls() -> impl Strategy<Value = EventKind> {
    prop_oneof![
        (call(), tool()).prop_map(|(call, tool)| EventKind::ToolStarted { call, tool }),
        (call(), tool(), ends(), proptest::option::of("[a-z ]{0,8}"))
            .prop_map(|(call, tool, end, output)| EventKind::ToolFinished { call, tool, end, output }),
        (call(), agent()).prop_map(|(call, agent)| EventKind::DelegationStarted { call, agent }),
        (call(), agent(), ends(), "[a-z ]{0,8}")
            .prop_map(|(call, agent, end, text)| EventKind::DelegationFinished { call, agent, end, text }),
    ]
}

fn words() -> impl Strategy<Value = EventKind> {
    let roles = select(vec![TextRole::Answer, TextRole::Narration, TextRole::Plain]);
    prop_oneof![
        4 => ("[a-zü ]{1,6}", roles).prop_map(|(text, role)| EventKind::Text { text, role }),
        1 => Just(EventKind::TextReset),
        1 => Just(EventKind::Composing),
        1 => "[a-z]{1,6}".prop_map(|content| EventKind::TodoStarted { content }),
        1 => "[a-z]{1,6}".prop_map(|content| EventKind::TodoFinished { content }),
    ]
}

fn plan() -> impl Strategy<Value = EventKind> {
    let status = select(vec![StepStatus::Pending, StepStatus::InProgress, StepStatus::Completed]);
    let step = (select(vec!["Jira", "Github"]), select(vec!["a", "b"]), status);
    let causes = vec![
        PlanCause::Todos,
        PlanCause::Delegation,
        PlanCause::Progress,
        PlanCause::Closing,
        PlanCause::GivenUp,
    ];
    (proptest::collection::vec(step, 1..4), select(causes)).prop_map(|(steps, cause)| {
        let step = |(order, (agent, title, status)): (usize, (&str, &str, StepStatus))| PlanStep {
            step_id: format!("step-{agent}-{title}"),
            title: title.to_owned(),
            agent: agent.to_owned(),
            status,
            skipped: false,
            order,
        };
        EventKind::Plan { steps: steps.into_iter().enumerate().map(step).collect(), cause, first: false }
    })
}

fn forms() -> impl Strategy<Value = EventKind> {
    "[a-z]{0,4}"
        .prop_map(|description| EventKind::InputRequired { form: Form { description, ..Form::default() } })
}

fn event() -> impl Strategy<Value = RunEvent> {
    let kind = prop_oneof![4 => calls(), 4 => words(), 1 => plan(), 1 => forms()];
    (kind, proptest::option::of(agent())).prop_map(|(kind, agent)| {
        let event = RunEvent::own(kind);
        match agent {
            Some(agent) => event.within(&agent),
            None => event,
        }
    })
}

fn finished() -> impl Strategy<Value = RunEvent> {
    let origins = vec![
        AnswerOrigin::Structured,
        AnswerOrigin::Marked,
        AnswerOrigin::Model,
        AnswerOrigin::Synthesis,
        AnswerOrigin::Partial,
    ];
    let outcome = prop_oneof![
        ("[a-z ]{0,300}", select(origins)).prop_map(|(text, origin)| Outcome::Completed { text, origin }),
        Just(Outcome::Failed { reason: "no".to_owned() }),
        Just(Outcome::Canceled),
        Just(Outcome::InputRequired),
    ];
    outcome.prop_map(|outcome| RunEvent::own(EventKind::Finished { outcome }))
}

/// A run, or several of one task that waited in between.
fn log() -> impl Strategy<Value = Vec<RunEvent>> {
    let run = || proptest::collection::vec(event(), 0..25);
    let waits = RunEvent::own(EventKind::Finished { outcome: Outcome::InputRequired });
    (proptest::collection::vec(run(), 0..3), run(), finished()).prop_map(move |(before, last, end)| {
        let earlier = before.into_iter().flat_map(|run| run.into_iter().chain([waits.clone()]));
        earlier.chain(last).chain([end]).collect()
    })
}

fn presentation() -> impl Strategy<Value = Presentation> {
    let agent = |tool_output| Presentation::SubAgent { name: "jira".into(), tool_output };
    let supervisor = |tool_output| Presentation::Supervisor { tool_output };
    select(vec![supervisor(None), supervisor(Some(3)), agent(None), agent(Some(3))])
}

fn artifacts(wire: &[Event]) -> impl Iterator<Item = &TaskArtifactUpdateEvent> {
    wire.iter().filter_map(|event| match event {
        Event::ArtifactUpdate(update) => Some(update),
        _ => None,
    })
}

fn ends_run(event: &Event) -> bool {
    event.state().is_some_and(TaskState::ends_stream)
}

proptest! {
    #[test]
    fn a_log_gets_the_bound_events(log in log(), presentation in presentation()) {
        let pieces = |event: &RunEvent| if matches!(event.kind, EventKind::Text { .. }) { 4 } else { 1 };
        let log: Vec<_> = log.iter().flat_map(|event| vec![event.clone(); pieces(event)]).collect();
        let mut binding = Binding::new("t", "c", "0", &presentation);
        let (mut direct, mut wire) = (binding.clone(), Vec::new());
        for (number, event) in (1..).zip(&log) {
            match binding.addition(number, event) {
                Addition::Events(events) => wire.extend(events),
                Addition::Text(template, text) => wire.push(template.event(text)),
            }
        }
        prop_assert_eq!(wire, bound(&mut direct, 1, &log));
    }

    #[test]
    fn a_stream_is_well_formed(log in log(), presentation in presentation()) {
        let mut binding = Binding::new("t", "c", "0af7651916cd43dd8448eb211c80319c", &presentation);
        let wire = bound(&mut binding, 1, &log);

        let mut known = BTreeSet::new();
        for update in artifacts(&wire) {
            let artifact = &update.artifact;
            let name = artifact.name.clone().unwrap_or_default();
            let fresh = known.insert(artifact.artifact_id.clone());
            prop_assert!(!(update.append && fresh), "appended to nothing: {update:?}");
            if name.starts_with("execution_plan") {
                prop_assert_eq!(name == "execution_plan_update" || !fresh, true, "a change of no plan: {:?}", update);
            } else {
                let is_reset = name == "streaming_result" && !update.append;
                prop_assert!(fresh != update.append || is_reset, "an id was used twice: {update:?}");
            }
            if name == "streaming_result" && !presentation.is_sub_agent() {
                prop_assert!(!update.last_chunk);
            }
            if matches!(name.as_str(), "final_result" | "partial_result") {
                prop_assert!(update.last_chunk);
                prop_assert!(artifact.metadata.as_ref().is_some_and(|data| data.contains_key("trace_id")));
            }
            if name.starts_with("tool_notification") {
                let metadata = artifact.metadata.as_ref().unwrap();
                prop_assert!(metadata.contains_key("sourceAgent") && metadata.contains_key("agentType"));
                prop_assert!(!artifact.text().contains("**") && artifact.text().ends_with('\n'));
            }
        }

        let runs = log.iter().filter(|event| matches!(event.kind, EventKind::Finished { .. })).count();
        prop_assert_eq!(wire.iter().filter(|event| ends_run(event)).count(), runs, "one final status a run");
        prop_assert!(wire.last().is_some_and(ends_run), "and it comes last");
        for event in wire.iter().filter(|event| ends_run(event)) {
            let Event::StatusUpdate(status) = event else { panic!("{event:?}") };
            prop_assert!(status.metadata.as_ref().is_some_and(|data| data.contains_key("trace_id")));
        }
    }

    #[test]
    fn a_stream_that_is_made_again_in_pieces_is_the_same(
        log in log(),
        presentation in presentation(),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = |log: &[RunEvent]| {
            let mut binding = Binding::new("t", "c", "0", &presentation);
            bound(&mut binding, 1, log)
        };
        // A copy that looks ahead changes nothing.
        let mut binding = Binding::new("t", "c", "0", &presentation);
        let at = cut.index(log.len());
        let mut wire = bound(&mut binding, 1, &log[..at]);
        bound(&mut binding.clone(), at as u64 + 1, &log[at..]);
        wire.extend(bound(&mut binding, at as u64 + 1, &log[at..]));
        prop_assert_eq!(wire, whole(&log));
    }

    #[test]
    fn a_reset_after_a_crash_is_that_of_the_text_that_clients_know(
        log in log(),
        presentation in presentation(),
        pieces in proptest::collection::vec("[a-z ]{1,6}", 0..6),
        stored in any::<prop::sample::Index>(),
    ) {
        let turn = [RunEvent::own(EventKind::TurnStarted)];
        let mut log = log;
        log.extend(turn);
        let text = |text: String| RunEvent::own(EventKind::Text { text, role: TextRole::Answer });
        let shown: Vec<_> = pieces.into_iter().map(text).collect();
        let stored = &shown[..if shown.is_empty() { 0 } else { stored.index(shown.len()) }];
        let mut before = Binding::new("t", "c", "0", &presentation);
        let mut after = before.clone();
        let next = log.len() as u64 + 1;
        let seen = bound(&mut before, 1, &log).into_iter().chain(bound(&mut before, next, &shown));
        let seen: Vec<_> = seen.collect();
        bound(&mut after, 1, &log);
        bound(&mut after, next, stored);
        // The process that takes over begins above the numbers that may have been shown.
        let reset = bound(&mut after, 5000, &[RunEvent::own(EventKind::TextReset)]);
        let [Event::ArtifactUpdate(reset)] = reset.as_slice() else { panic!("{reset:?}") };
        prop_assert!(!reset.append);
        if let Some(last) = artifacts(&seen).filter(|update| !shown.is_empty() && is_text(update)).last() {
            prop_assert_eq!(&last.artifact.artifact_id, &reset.artifact.artifact_id);
        }
    }
}

fn is_text(update: &TaskArtifactUpdateEvent) -> bool {
    update.artifact.name.as_deref() == Some("streaming_result")
}

/// The wire events of these events, of which the first has the number `first`.
fn bound(binding: &mut Binding, first: u64, log: &[RunEvent]) -> Vec<Event> {
    (first..).zip(log).flat_map(|(number, event)| binding.bind(number, event)).collect()
}
