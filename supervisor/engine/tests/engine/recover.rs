//! Taking over from a process that died, and conversations that were left broken.

use std::sync::Arc;

use caipe_engine::{
    AnswerMode, DelegateUpdate, Effect, EventKind, Input, RemotePlace, Resume, ResumePoint, RunEvent,
    RunState, ToolTraits,
};
use caipe_model::{Message, Part, Role, ToolCall, ToolResult};
use serde_json::{Value, json};

use crate::sim::{Sim, abilities, reloaded, story, task};

fn begun() -> Sim {
    let mut sim = Sim::new(abilities(AnswerMode::Structured));
    sim.say("go");
    sim
}

#[test]
fn a_model_turn_is_asked_for_again() {
    let mut sim = begun();
    sim.state = reloaded(&sim.state);
    let steps = sim.state.counters.steps;
    assert_eq!(story(&sim.feed(Input::Recovered)), ["reset", "ask"]);
    assert_eq!(sim.state.counters.steps, steps, "the same step");
    sim.model("fine", &[]);
    assert!(sim.feed(Input::Recovered).is_empty(), "nothing is under way");
}

#[test]
fn a_last_turn_stays_the_last() {
    let mut abilities = abilities(AnswerMode::Structured);
    abilities.limits.steps = 0;
    let mut sim = Sim::new(abilities);
    sim.say("go");
    assert_eq!(story(&sim.feed(Input::Recovered)), ["reset", "ask without tools"]);
}

#[test]
fn tools_are_not_run_twice_and_agents_go_on() {
    let mut sim = begun();
    sim.model(
        "",
        &[
            ("s", "search", "{}"),
            ("a", "task", &task("jira", "x")),
            ("b", "task", &task("github", "y")),
            ("c", "task", &task("jira", "z")),
        ],
    );
    let frame = Box::new(RunState::new("jira".to_owned().into()));
    let event = RunEvent::own(EventKind::ToolStarted { call: "n".to_owned(), tool: "list".to_owned() });
    let reported =
        sim.delegate("a", DelegateUpdate::Checkpoint { frame: frame.clone(), events: vec![event.clone()] });
    let shown = Effect::Emit(event.within(&"jira".to_owned().into()));
    assert_eq!(reported, [shown], "what is kept is told with it");
    let (task, context) = ("t".to_owned(), "k".to_owned());
    sim.delegate("b", DelegateUpdate::Accepted { task: task.clone(), context: context.clone() });
    let event = RunEvent::own(EventKind::ToolStarted { call: "t".to_owned(), tool: "get".to_owned() });
    let place = Some(RemotePlace { seq: Some(4), shown: 1 });
    sim.delegate("b", DelegateUpdate::Event { event, place });
    sim.state = reloaded(&sim.state);
    let effects = sim.feed(Input::Recovered);
    assert_eq!(story(&effects), ["search Failed", "resume jira a", "resume github b", "resume jira c"]);
    let resumes: Vec<Option<Resume>> = effects
        .into_iter()
        .filter_map(|effect| if let Effect::Delegate { resume, .. } = effect { Some(resume) } else { None })
        .collect();
    let at = |from| Some(Resume { from: Some(from), answered: None });
    let place = RemotePlace { seq: Some(4), shown: 1 };
    let unknown = Some(Resume { from: None, answered: None });
    assert_eq!(
        resumes,
        [at(ResumePoint::Nested(frame)), at(ResumePoint::Remote { task, context, place }), unknown]
    );
    for id in ["a", "b", "c"] {
        sim.agent_answers(id, id);
    }
    assert_eq!(sim.result("s"), "Tool 'search' did not complete (session was interrupted).");
}

#[test]
fn a_run_can_move_unless_the_state_of_a_call_is_not_saved() {
    let mut sim = begun();
    assert!(sim.state.can_move(), "a model call is repeated");
    sim.model("", &[("s", "search", "{}"), ("a", "task", &task("jira", "x"))]);
    assert!(!sim.state.can_move(), "the tool may have done something");
    sim.tool("s", "found");
    assert!(!sim.state.can_move(), "nobody knows how far the agent is");
    let nested = |sim: &mut Sim, frame: &RunState| {
        let frame = Box::new(frame.clone());
        sim.delegate("a", DelegateUpdate::Checkpoint { frame, events: Vec::new() });
        sim.state.can_move()
    };
    let mut agent = begun();
    assert!(nested(&mut sim, &agent.state), "the agent's model call is repeated");
    agent.model("", &[("n", "search", "{}")]);
    assert!(!nested(&mut sim, &agent.state), "the agent's tool may have done something");
    agent.tool("n", "found");
    assert!(nested(&mut sim, &agent.state));
}

#[test]
fn a_round_of_tools_alone_goes_straight_on() {
    let mut sim = begun();
    sim.model("", &[("s", "search", "{}")]);
    assert_eq!(story(&sim.feed(Input::Recovered)), ["search Failed", "ask"]);
}

#[test]
fn new_abilities_hold_from_the_next_turn_on() {
    let mut sim = begun();
    let mut fewer = sim.abilities.clone();
    fewer.tools.clear();
    assert!(sim.feed(Input::Abilities { abilities: fewer }).is_empty());
    assert_eq!(story(&sim.model("", &[("s", "search", "{}")])), ["ask"]);
    assert!(sim.result("s").contains("no such tool"));
}

#[test]
fn a_repeatable_run_gets_no_other_tools() {
    let mut all = abilities(AnswerMode::Plain);
    let reads = || ToolTraits { is_repeatable: true, ..ToolTraits::default() };
    all.agents.clear();
    all.traits = all.tools.iter().map(|tool| (tool.clone(), reads())).collect();
    assert!(all.can_repeat_all());
    all.is_repeatable = true;
    let mut sim = Sim::new(all.clone());
    sim.say("go");
    let mut newer = all.clone();
    newer.tools.insert("delete".to_owned());
    newer.agents.insert("jira".to_owned().into());
    newer.is_repeatable = newer.can_repeat_all();
    assert!(!newer.is_repeatable);
    sim.feed(Input::Abilities { abilities: newer.clone() });
    sim.model("", &[("d", "delete", "{}"), ("a", "task", &task("jira", "x")), ("s", "search", "{}")]);
    sim.tool("s", "found");
    assert!(sim.result("d").contains("no such tool") && sim.result("a").contains("no such tool"));
    assert_eq!(sim.result("s"), "found");
    // The next run begins with what there is then.
    sim.model("fine", &[]);
    sim.abilities = newer;
    sim.say("again");
    assert_eq!(story(&sim.model("", &[("e", "delete", "{}")])), ["delete starts", "run delete e"]);
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall { id: id.to_owned(), name: "search".to_owned(), arguments: "{}".to_owned() })
}

fn result(id: &str) -> ToolResult {
    ToolResult { call_id: id.to_owned(), content: "kept".to_owned(), is_error: false }
}

fn assistant(parts: Vec<Part>, extra: Option<Value>) -> Message {
    Message { role: Role::Assistant, parts, extra }
}

fn block(block: Value) -> Part {
    Part::Provider { provider: "bedrock".to_owned(), block }
}

/// The ids of the results in each tool message of a conversation that was repaired, with whether it was kept.
fn repaired(messages: Vec<Message>) -> Vec<Vec<(String, bool)>> {
    let mut sim = Sim::new(abilities(AnswerMode::Structured));
    sim.state.messages = messages.into_iter().map(Arc::new).collect();
    sim.say("next");
    let tools = sim.state.messages.iter().filter(|message| message.role == Role::Tool);
    tools
        .map(|message| {
            let results = message.parts.iter().filter_map(|part| match part {
                Part::ToolResult(result) => Some((result.call_id.clone(), result.content == "kept")),
                Part::Provider { block, .. } => Some((block["tool_use_id"].as_str()?.to_owned(), true)),
                _ => None,
            });
            results.collect()
        })
        .collect()
}

#[test]
fn orphans_of_all_shapes_get_a_result() {
    let lost = |id: &str| vec![vec![(id.to_owned(), false)]];
    for (shape, message) in [
        ("part", assistant(vec![call("x")], None)),
        ("list", assistant(Vec::new(), Some(json!({ "tool_use": [{ "id": "x", "name": "search" }] })))),
        ("one", assistant(Vec::new(), Some(json!({ "toolUse": { "toolUseId": "x", "name": "search" } })))),
        (
            "kwargs",
            assistant(Vec::new(), Some(json!({ "additional_kwargs": { "toolUse": { "toolUseId": "x" } } }))),
        ),
        ("block", assistant(vec![block(json!({ "type": "tool_use", "id": "x", "name": "search" }))], None)),
        ("bedrock block", assistant(vec![block(json!({ "toolUse": { "toolUseId": "x" } }))], None)),
        (
            "all at once",
            assistant(
                vec![call("x"), block(json!({ "type": "tool_use", "toolUseId": "x" }))],
                Some(json!({ "tool_use": [{ "id": "x" }] })),
            ),
        ),
    ] {
        assert_eq!(repaired(vec![message]), lost("x"), "{shape}");
    }
    let user = Message { role: Role::User, parts: vec![call("x")], extra: None };
    assert!(repaired(vec![user]).is_empty(), "a user calls nothing");
}

#[test]
fn results_are_matched_with_their_calls() {
    let results = |ids: &[&str]| Message::results(ids.iter().map(|id| result(id)));
    let stored = |ids: &[&str]| ids.iter().map(|id| ((*id).to_owned(), true)).collect::<Vec<_>>();
    for (shape, messages, expected) in [
        (
            "whole",
            vec![assistant(vec![call("a"), call("b")], None), results(&["b", "a"])],
            vec![stored(&["b", "a"])],
        ),
        (
            "apart",
            vec![assistant(vec![call("a"), call("b")], None), results(&["a"]), results(&["b"])],
            vec![stored(&["a"]), stored(&["b"])],
        ),
        ("doubled", vec![assistant(vec![call("a")], None), results(&["a", "a"])], vec![stored(&["a"])]),
        ("unknown", vec![assistant(vec![call("a")], None), results(&["z", "a"])], vec![stored(&["a"])]),
        ("of nobody", vec![Message::text(Role::User, "hi"), results(&["z"])], vec![]),
        (
            "out of place",
            vec![assistant(vec![call("a")], None), Message::text(Role::User, "hi"), results(&["a"])],
            vec![vec![("a".to_owned(), false)]],
        ),
        (
            "provider's own",
            vec![
                assistant(vec![call("a")], None),
                Message {
                    role: Role::Tool,
                    parts: vec![block(json!({ "type": "tool_result", "tool_use_id": "a" }))],
                    extra: None,
                },
            ],
            vec![stored(&["a"])],
        ),
    ] {
        assert_eq!(repaired(messages), expected, "{shape}");
    }
}
