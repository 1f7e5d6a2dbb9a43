//! Guards: each by a model that misbehaves in just that way, with the guard and without it.

use caipe_engine::{
    Abilities, AnswerMode, Effect, GuardLimits, Input, Limits, Outcome, ToolOutput, ToolTraits,
};
use serde_json::{Value, json};

use crate::sim::{Sim, abilities, story};

/// No guard at all.
const OFF: GuardLimits =
    GuardLimits { repeated_calls: 0, repeated_errors: 0, ping_pong: 0, empty_turns: 0, plan_rounds: 0 };

/// Most turns of the model before a test gives up on the run.
const MOST_TURNS: usize = 240;

/// One turn of a model: nothing, or one call. The number is that of the turn.
type Model = fn(usize) -> Option<(&'static str, Value)>;

/// The result of a call. The number is that of the turn.
type Tool = fn(usize) -> Result<String, String>;

/// A run of this model, which answers once it may not call tools any more.
struct Run {
    sim: Sim,
    turns: usize,
    /// The calls that were run.
    calls: usize,
}

fn run(guards: GuardLimits, model: Model, tool: Tool) -> Run {
    let limits = Limits { guards, steps: 10_000, ..Limits::default() };
    let pause = ("wait".to_owned(), ToolTraits { is_pause: true, ..ToolTraits::default() });
    let mut abilities = Abilities { limits, traits: [pause].into(), ..abilities(AnswerMode::Structured) };
    abilities.tools.insert("wait".to_owned());
    let mut run = Run { sim: Sim::new(abilities), turns: 0, calls: 0 };
    let mut effects = run.sim.say("go");
    while run.sim.outcome().is_none() && run.turns < MOST_TURNS {
        run.turns += 1;
        let may_call = !effects.iter().any(|effect| matches!(effect, Effect::CallModel { tools: false, .. }));
        let id = format!("c{}", run.turns);
        effects = match model(run.turns).filter(|_| may_call) {
            Some((name, arguments)) => run.sim.model("", &[(&id, name, &arguments.to_string())]),
            None if may_call => run.sim.model("", &[]),
            None => run.sim.model("This is what I know.", &[]),
        };
        if effects.iter().any(|effect| matches!(effect, Effect::CallTool { .. })) {
            run.calls += 1;
            let (content, is_error) =
                tool(run.turns).map_or_else(|error| (error, true), |content| (content, false));
            effects = run.sim.feed(Input::ToolFinished {
                call: id,
                output: ToolOutput { content, is_error, ..ToolOutput::default() },
                time_ms: 0,
            });
        }
    }
    run
}

impl Run {
    /// The events of guards.
    fn limited(&self) -> Vec<String> {
        story(&self.sim.all).into_iter().filter(|line| line.starts_with("limited by ")).collect()
    }

    /// The text that the model read with this beginning of a reminder or refusal.
    fn read(&self, text: &str) -> bool {
        self.sim.results().iter().any(|result| result.content.contains(text))
    }
}

/// With the guard on, the run is reminded, limited and stopped with an answer; with it off, it continues.
fn check(
    on: GuardLimits,
    model: Model,
    tool: Tool,
    reminder: &str,
    limit: &str,
    (turns, calls): (usize, usize),
) {
    let guarded = run(on, model, tool);
    assert_eq!((guarded.turns, guarded.calls), (turns, calls), "{limit}: {:?}", guarded.limited());
    assert!(guarded.read(reminder), "{limit}: {:?}", guarded.sim.results());
    assert!(guarded.limited()[0].starts_with(&format!("limited by {limit}: ")), "{:?}", guarded.limited());
    let Some(Outcome::Completed { text, .. }) = guarded.sim.outcome() else { panic!("{limit}") };
    assert!(text.starts_with("This is what I know."), "{text}");
    let free = run(OFF, model, tool);
    assert_eq!((free.turns, free.limited().len()), (MOST_TURNS, 0), "{limit}");
    assert!(!free.read("[Reminder]") && !free.read("[Not run]"), "{limit}");
}

#[test]
fn equal_calls_with_equal_results() {
    let on = GuardLimits { repeated_calls: 3, ..OFF };
    let model: Model = |turn| {
        // The same call in other words.
        let arguments = if turn % 2 == 0 {
            json!({"b": null, "a": " x  y", "thought": turn})
        } else {
            json!({"thought": "again", "a": "x y"})
        };
        Some(("search", arguments))
    };
    let reminder = "text\n\n[Reminder] You have made this call 3 times with the same result.";
    check(on, model, |_| Ok("text".to_owned()), reminder, "repeated_calls", (6, 3));
    let changing = run(on, model, |turn| Ok(format!("{turn} of 240 done")));
    assert_eq!(changing.calls, MOST_TURNS, "a result that changes is progress");
    let polling = run(
        on,
        |turn| Some(if turn % 2 == 0 { ("wait", json!({"seconds": 9})) } else { ("search", json!({})) }),
        |_| Ok("not yet".to_owned()),
    );
    assert_eq!(polling.calls, MOST_TURNS, "a model that waits polls");
}

/// Before, a result with such a beginning passed for a call that was not run, so that nothing ended the repetition.
#[test]
fn a_result_that_reads_like_a_limit_is_counted_as_any_other() {
    let on = GuardLimits { repeated_calls: 3, ..OFF };
    let model: Model = |_| Some(("search", json!({"q": "x"})));
    for start in ["[Not run]", "[Budget used up]", "[Document already retrieved]"] {
        let tool: Tool = match start {
            "[Not run]" => |_| Ok("[Not run] the job".to_owned()),
            "[Budget used up]" => |_| Ok("[Budget used up] is the title".to_owned()),
            _ => |_| Ok("[Document already retrieved] on Monday".to_owned()),
        };
        let run = run(on, model, tool);
        assert_eq!(run.calls, 3, "{start}: {:?}", run.limited());
        assert!(run.read("[Reminder] You have made this call 3 times"), "{start}");
    }
}

#[test]
fn equal_errors_of_one_tool() {
    let on = GuardLimits { repeated_errors: 3, ..OFF };
    let model: Model = |turn| Some(("search", json!({"q": turn})));
    let reminder = "search has failed 3 times with the same error";
    check(on, model, |turn| Err(format!("timeout, request {turn}")), reminder, "repeated_errors", (9, 6));
    let mending =
        run(on, model, |turn| if turn % 3 == 0 { Ok("ok".to_owned()) } else { Err("timeout".to_owned()) });
    assert_eq!(mending.calls, MOST_TURNS, "a success ends the row");
}

#[test]
fn two_calls_by_turns() {
    let on = GuardLimits { ping_pong: 3, ..OFF };
    let model: Model =
        |turn| Some((if turn % 2 == 0 { "delete_app" } else { "search" }, json!({"app": "a"})));
    let reminder = "You have called the same two tools by turns 3 times.";
    check(on, model, |turn| Ok(format!("state {turn}")), reminder, "ping_pong", (9, 6));
    let paging: Model =
        |turn| Some((if turn % 2 == 0 { "delete_app" } else { "search" }, json!({"page": turn})));
    assert_eq!(run(on, paging, |_| Ok("page".to_owned())).calls, MOST_TURNS, "other arguments are progress");
}

#[test]
fn empty_turns() {
    let on = GuardLimits { empty_turns: 3, ..OFF };
    let guarded = run(on, |_| None, |_| Ok(String::new()));
    assert_eq!(guarded.turns, 4);
    assert_eq!(guarded.limited(), ["limited by empty_turns: the model said nothing, several times"]);
    assert_eq!(run(OFF, |_| None, |_| Ok(String::new())).turns, MOST_TURNS);
    // Two empty turns after each call.
    let model: Model = |turn| (turn % 3 == 1).then(|| ("search", json!({"q": turn})));
    let reminder = "[Reminder] Your last turn was empty.";
    check(on, model, |turn| Ok(format!("{turn}")), reminder, "empty_turns", (16, 5));
}

#[test]
fn a_plan_that_does_not_change() {
    let on = GuardLimits { plan_rounds: 4, ..OFF };
    let model: Model = |turn| {
        let todos = json!({"todos": [{"content": "[Jira] look", "status": "in_progress"}]});
        Some(if turn == 1 { ("write_todos", todos) } else { ("search", json!({"q": turn})) })
    };
    let reminder = "[Reminder] No step of your plan has changed in 4 rounds of calls.";
    check(on, model, |turn| Ok(format!("{turn}")), reminder, "plan_rounds", (12, 8));
    let moving: Model = |turn| {
        let status = if turn % 8 == 0 { "pending" } else { "in_progress" };
        let todos = json!({"todos": [{"content": "[Jira] look", "status": status}]});
        Some(if turn % 4 == 0 { ("write_todos", todos) } else { ("search", json!({"q": turn})) })
    };
    assert_eq!(run(on, moving, |turn| Ok(format!("{turn}"))).turns, MOST_TURNS, "a plan that moves");
}

/// A run that was seen in production: 213 calls of the model, of which 203 returned nothing.
#[test]
fn the_runaway_of_the_wild_is_stopped_by_the_defaults() {
    for empty_between in [1, 2, 20] {
        let wild = |turn: usize| turn % (empty_between + 1) == 1;
        let limits = Limits::default();
        let mut sim = Sim::new(Abilities { limits, ..abilities(AnswerMode::Structured) });
        let mut effects = sim.say("go");
        let mut turns = 0;
        while sim.outcome().is_none() {
            turns += 1;
            let id = format!("c{turns}");
            let asked = effects.iter().any(|effect| matches!(effect, Effect::CallModel { tools: true, .. }));
            effects = match (asked, wild(turns)) {
                (true, true) => {
                    sim.model("", &[(&id, "search", &json!({"q": turns}).to_string())]);
                    sim.tool(&id, "text")
                }
                (true, false) => sim.model("", &[]),
                (false, _) => sim.model("This is what I know.", &[]),
            };
        }
        assert!(turns < 30, "{turns}");
        let Some(Outcome::Completed { text, .. }) = sim.outcome() else { panic!("{:?}", sim.outcome()) };
        assert!(text.starts_with("This is what I know."), "{text}");
    }
}
