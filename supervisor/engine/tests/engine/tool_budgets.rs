//! The budgets that tools share: calls, tokens, money and time.

use caipe_engine::{
    Abilities, AnswerMode, Budget, Effect, EventKind, Outcome, RunState, Spent, ToolBudget, ToolTraits,
};
use proptest::prelude::*;
use serde_json::json;

use crate::sim::{Sim, abilities, reloaded, story};

const TOOL: &str = "search";

/// A supervisor whose search has this budget.
fn with_budget(budget: ToolBudget) -> Abilities {
    let traits = ToolTraits { budget: Some("s".to_owned()), ..ToolTraits::default() };
    Abilities {
        traits: [(TOOL.to_owned(), traits)].into(),
        budget: Budget { tools: [("s".to_owned(), budget)].into(), ..Budget::default() },
        ..abilities(AnswerMode::Structured)
    }
}

fn begun(abilities: Abilities) -> Sim {
    let mut sim = Sim::new(abilities);
    sim.say("go");
    sim
}

/// Whether the call runs.
fn call(sim: &mut Sim, at: usize) -> bool {
    let arguments = json!({"query": at}).to_string();
    let effects = sim.model("", &[(&id(at), TOOL, &arguments)]);
    effects.iter().any(|effect| matches!(effect, Effect::CallTool { .. }))
}

fn id(at: usize) -> String {
    format!("c{at}")
}

#[test]
fn each_limit_warns_then_refuses_then_asks_for_the_answer() {
    let cent = 10_000_000_000;
    let calls = ToolBudget { calls: Some(5), ..ToolBudget::default() };
    let tokens = ToolBudget { tokens: Some(50), ..ToolBudget::default() };
    let cost = ToolBudget { cost: Some(5 * cent), price: cent, ..ToolBudget::default() };
    let time_ms = ToolBudget { time_ms: Some(7_500), ..ToolBudget::default() };
    for (budget, limit, left, whole) in [
        (calls, "tool_calls", "1 of 5 calls of search", "5 calls of search"),
        (tokens, "tool_tokens", "10 of 50 tokens for results of search", "50 tokens for results of search"),
        (cost, "tool_cost", "USD 0.01 of USD 0.05 for calls of search", "USD 0.05 for calls of search"),
        (time_ms, "tool_time", "1.5 of 7.5 seconds for calls of search", "7.5 seconds for calls of search"),
    ] {
        let mut sim = begun(with_budget(budget));
        // Each call has a result of 10 tokens, and takes 1.5 seconds.
        for at in 0..5 {
            assert!(call(&mut sim, at), "{limit} {at}");
            sim.slow_tool(&id(at), &"word".repeat(10), 1500);
        }
        assert!(!sim.result("c2").contains("[Budget]"), "{limit}: {}", sim.result("c2"));
        let note = format!("[Budget] Left for this request: {left}. Do what matters most with it.");
        assert!(sim.result("c3").ends_with(&note), "{limit}: {}", sim.result("c3"));
        assert!(!sim.result("c4").contains("[Budget]"), "it warns once: {}", sim.result("c4"));

        let effects = story(&sim.model("", &[("more", TOOL, "{}")]));
        let reason = format!("the budget of {whole} is used up");
        assert_eq!(effects, [format!("limited by {limit}: {reason}"), "ask".to_owned()]);
        let refused = sim.result("more");
        assert!(refused.starts_with("[Budget used up] "), "{refused}");
        assert!(refused.ends_with("Do NOT call search again."), "{refused}");
        assert!(limit == "tool_calls" || refused.contains(&reason), "{refused}");

        assert_eq!(story(&sim.model("", &[("stubborn", TOOL, "{}")])), ["ask without tools"], "{limit}");
        sim.model("It is so.", &[]);
        let Some(Outcome::Completed { text, .. }) = sim.outcome() else { panic!("{:?}", sim.outcome()) };
        assert!(text.starts_with("It is so."), "{text}");

        sim.say("again");
        assert!(call(&mut sim, 9), "each request has the whole budget: {limit}");
    }
}

#[test]
fn the_price_of_a_call_counts_for_the_run() {
    let mut abilities = with_budget(ToolBudget { price: 400, ..ToolBudget::default() });
    abilities.budget.cost = Some(1000);
    let mut sim = begun(abilities);
    for at in 0..2 {
        assert!(call(&mut sim, at));
        sim.tool(&id(at), "text");
    }
    assert_eq!(sim.state.counters.spent, Spent { calls: 2, tokens: 22, cost: 800 });
    assert!(!call(&mut sim, 2), "a third call would cost more than the run may");
    assert!(sim.result("c2").starts_with("[Budget used up]"), "{}", sim.result("c2"));
}

#[test]
fn a_run_that_an_earlier_version_stored_keeps_its_counts() {
    let mut sim = begun(with_budget(2.into()));
    assert!(call(&mut sim, 0));
    let mut stored = serde_json::to_value(&sim.state).unwrap();
    stored["abilities"]["budget"]["tools"] = json!({"s": 2});
    stored["counters"]["budgets"] = json!({"s": 1});
    let messages = std::mem::take(&mut sim.state.messages);
    sim.state = serde_json::from_value(stored).unwrap();
    sim.state.messages = messages;
    sim.tool("c0", "text");
    assert!(call(&mut sim, 1));
    sim.tool("c1", "text");
    assert!(!call(&mut sim, 2));
}

/// A budget of which each limit may be missing.
fn budgets() -> impl Strategy<Value = ToolBudget> {
    let most = || proptest::option::of(0_u64..40);
    (most(), most(), most(), 0_u64..8, most()).prop_map(|(calls, tokens, cost, price, time_ms)| ToolBudget {
        calls,
        tokens,
        cost,
        price,
        time_ms,
    })
}

proptest! {
    #[test]
    fn a_call_runs_only_while_every_limit_covers_it(
        budget in budgets(),
        calls in proptest::collection::vec((0_usize..60, 0_u64..20), 1..12),
    ) {
        let mut sim = begun(with_budget(budget));
        let (mut made, mut tokens, mut time) = (0_u64, 0, 0);
        let mut refused = 0_u32;
        for (at, (bytes, time_ms)) in calls.into_iter().enumerate() {
            let covers = |most: Option<u64>, used: u64| most.is_none_or(|most| used < most);
            let covered = covers(budget.calls, made)
                && covers(budget.tokens, tokens)
                && covers(budget.time_ms, time)
                && budget.cost.is_none_or(|most| (made + 1) * budget.price <= most);
            prop_assert_eq!(call(&mut sim, at), covered);
            if !covered {
                refused += 1;
                if refused == 2 {
                    break;
                }
                continue;
            }
            (made, time) = (made + 1, time + time_ms);
            // An empty result reads "(no output)".
            tokens += if bytes == 0 { 3 } else { bytes.div_ceil(4) as u64 };
            sim.slow_tool(&id(at), &"x".repeat(bytes), time_ms);
        }
        let limited = sim.events().into_iter().filter(|event| matches!(event.kind, EventKind::Limited { .. }));
        prop_assert_eq!(limited.count(), usize::from(refused > 0));
    }
}

/// A call that a budget does not let run is stored as such, and does not count as a call with a result.
#[test]
fn a_call_that_was_not_run_stays_one_after_a_crash() {
    let budget = Budget { calls: Some(1), ..Budget::default() };
    let mut sim = Sim::new(Abilities { budget, ..abilities(AnswerMode::Plain) });
    sim.say("go");
    sim.model("", &[("a", "search", r#"{"q":1}"#), ("b", "search", r#"{"q":2}"#)]);
    let mut stored = serde_json::to_value(&sim.state).unwrap();
    assert_eq!(stored["calls"][1]["status"]["not_run"], true);
    assert_eq!(stored["calls"][0]["status"].get("not_run"), None);
    stored["calls"][1]["status"].as_object_mut().unwrap().remove("not_run");
    serde_json::from_value::<RunState>(stored).expect("a run of an earlier version");
    sim.state = reloaded(&sim.state);
    sim.tool("a", "found");
    let counted = serde_json::to_value(&sim.state.counters.loops).unwrap();
    assert_eq!(counted["calls"].as_object().unwrap().len(), 1, "{counted}");
}
