//! Budgets: of tools, and those of the knowledge base.

use caipe_engine::{
    Abilities, AnswerMode, Budget, DelegateUpdate, Effect, Input, ModelUse, Outcome, Price, Spent,
    ToolOutput, ToolTraits,
};
use caipe_model::Usage;
use serde_json::{Value, json};

use crate::sim::{Sim, abilities, answer, story};

const SEARCH: &str = include_str!("../../../../fixtures/wire/rag_search_response.json");

/// A supervisor with a knowledge base.
fn with_knowledge() -> Abilities {
    let knowledge = |budget: &str, results| ToolTraits {
        budget: Some(budget.to_owned()),
        output_chars: Some(10_000),
        results,
        is_knowledge: true,
        ..ToolTraits::default()
    };
    let traits = [("search", Some(3)), ("fetch_document", None)];
    Abilities {
        tools: ["search", "fetch_document", "delete_app"].map(str::to_owned).into(),
        traits: traits.map(|(tool, results)| (tool.to_owned(), knowledge(tool, results))).into(),
        budget: Budget {
            tools: [("search".to_owned(), 5.into()), ("fetch_document".to_owned(), 10.into())].into(),
            ..Budget::default()
        },
        ..abilities(AnswerMode::Structured)
    }
}

fn begun() -> Sim {
    let mut sim = Sim::new(with_knowledge());
    sim.say("what is agntcy slim?");
    sim
}

/// Calls a tool until its budget is used up.
fn use_up(sim: &mut Sim, tool: &str, calls: usize) {
    for at in 0..calls {
        let id = format!("{tool}{at}");
        let arguments = json!({"document_id": format!("doc-{at:03}"), "query": at}).to_string();
        assert_eq!(
            story(&sim.model("", &[(&id, tool, &arguments)])).last(),
            Some(&format!("run {tool} {id}"))
        );
        sim.tool(&id, "text");
    }
}

fn cap(tool: &str, most: u32) -> String {
    format!(
        "[Document already retrieved] You have reached the maximum allowed number of {tool} calls ({most}). Please \
         synthesize your answer from the documents already retrieved. Do NOT call {tool} again."
    )
}

#[test]
fn the_call_above_a_cap_reads_as_a_success_and_the_model_answers() {
    for (tool, most) in [("search", 5), ("fetch_document", 10)] {
        let mut sim = begun();
        use_up(&mut sim, tool, most as usize);
        let effects = sim.model("", &[("more", tool, "{}")]);
        assert_eq!(
            story(&effects),
            [
                format!("limited by tool_calls: the budget of {most} calls of {tool} is used up"),
                "ask".to_owned()
            ]
        );
        assert_eq!(sim.result("more"), cap(tool, most));
        assert!(sim.results().iter().all(|result| !result.is_error));
        sim.model("", &[("answer", "PlatformEngineerResponse", &answer("SLIM is a protocol."))]);
        let Some(Outcome::Completed { text, .. }) = sim.outcome() else { panic!("{:?}", sim.outcome()) };
        assert!(text.starts_with("SLIM is a protocol."), "{text}");
    }
}

#[test]
fn a_model_that_keeps_calling_a_capped_tool_must_answer_without_tools() {
    let mut sim = begun();
    use_up(&mut sim, "search", 5);
    assert_eq!(story(&sim.model("", &[("again", "search", "{}")])).last(), Some(&"ask".to_owned()));
    assert_eq!(story(&sim.model("", &[("stubborn", "search", "{}")])), ["ask without tools"]);
    assert_eq!(
        sim.result("stubborn"),
        "RAG budget exhausted. Synthesize your answer from what was already retrieved."
    );
    sim.model("SLIM is a protocol.", &[("deaf", "search", "{}")]);
    let Some(Outcome::Completed { text, .. }) = sim.outcome() else { panic!("{:?}", sim.outcome()) };
    assert!(text.starts_with("SLIM is a protocol."), "{text}");
}

#[test]
fn a_turn_that_also_calls_another_tool_runs_normally() {
    let mut sim = begun();
    use_up(&mut sim, "search", 5);
    for turn in 0..3 {
        let (search, other) = (format!("s{turn}"), format!("o{turn}"));
        let effects = sim.model("", &[(&search, "search", "{}"), (&other, "fetch_document", "{}")]);
        assert_eq!(story(&effects).last(), Some(&format!("run fetch_document {other}")));
        sim.tool(&other, "text");
        assert_eq!(sim.result(&search), cap("search", 5));
    }
}

#[test]
fn parallel_calls_count_and_a_new_request_counts_anew() {
    let mut sim = begun();
    let calls: Vec<(String, String)> =
        (0..8).map(|at| (format!("c{at}"), json!({"query": at}).to_string())).collect();
    let calls: Vec<(&str, &str, &str)> =
        calls.iter().map(|(id, arguments)| (id.as_str(), "search", arguments.as_str())).collect();
    let started = sim.model("", &calls);
    assert_eq!(started.iter().filter(|effect| matches!(effect, Effect::CallTool { .. })).count(), 5);
    for at in 0..5 {
        sim.tool(&format!("c{at}"), "text");
    }
    assert_eq!((sim.result("c4"), sim.result("c5")), ("text".to_owned(), cap("search", 5)));
    sim.model("", &[("answer", "PlatformEngineerResponse", &answer("Done."))]);
    sim.say("again");
    use_up(&mut sim, "search", 5);
}

#[test]
fn the_number_of_results_is_lowered_or_set() {
    for (asked, limit) in [
        (json!({"limit": 10}), 3),
        (json!({"limit": 2}), 2),
        (json!({}), 3),
        (json!({"limit": "10"}), 3),
        (json!({"limit": 0}), 3),
        (json!({"limit": -1}), 3),
    ] {
        let mut sim = begun();
        let effects = sim.model("", &[("a", "search", &asked.to_string())]);
        let arguments = effects.iter().find_map(|effect| match effect {
            Effect::CallTool { arguments, .. } => Some(arguments.clone()),
            _ => None,
        });
        assert_eq!(arguments.unwrap()["limit"], Value::from(limit), "{asked}");
    }
}

#[test]
fn a_long_document_is_cut_for_the_model_and_never_shown() {
    let mut sim = begun();
    sim.model("", &[("a", "fetch_document", r#"{"document_id":"d"}"#)]);
    let effects = sim.tool("a", &"ä".repeat(10_001));
    let read = sim.result("a");
    assert_eq!(read.matches('ä').count(), 10_000);
    assert!(read.ends_with("[Output truncated]"), "{}", &read[read.len() - 40..]);
    assert!(!format!("{effects:?}").contains('ä'), "the event has no output");
}

#[test]
fn the_sources_follow_the_answer_once() {
    let mut sim = begun();
    sim.model("", &[("s", "search", r#"{"query":"argo"}"#)]);
    sim.tool("s", SEARCH);
    sim.model("", &[("f", "fetch_document", r#"{"document_id":"doc-002"}"#)]);
    sim.tool("f", "A HorizontalPodAutoscaler writes spec.replicas.");
    let effects = sim.model("", &[("answer", "PlatformEngineerResponse", &answer("Leave it out."))]);
    let whole = "Leave it out.\n\n**Sources**\n\n1. Autoscaling and GitOps (`doc-002`)";
    let texts: Vec<String> =
        story(&effects).iter().filter_map(|line| line.strip_prefix("Answer: ").map(str::to_owned)).collect();
    assert_eq!(texts.concat(), whole);
    assert!(matches!(sim.outcome(), Some(Outcome::Completed { text, .. }) if text == whole));
    sim.say("thanks");
    sim.model("", &[("again", "PlatformEngineerResponse", &answer("You are welcome."))]);
    assert!(matches!(sim.outcome(), Some(Outcome::Completed { text, .. }) if text == "You are welcome."));
}

#[test]
fn a_lost_call_of_a_tool_that_only_reads_is_repeated() {
    for (is_repeatable, expected) in [(true, "run delete_app a"), (false, "ask")] {
        let mut abilities = with_knowledge();
        let traits = ToolTraits { is_repeatable, ..ToolTraits::default() };
        abilities.traits.insert("delete_app".to_owned(), traits);
        let mut sim = Sim::new(abilities);
        sim.say("go");
        sim.model("", &[("a", "delete_app", "{}")]);
        sim.state = crate::sim::reloaded(&sim.state);
        let effects = sim.feed(caipe_engine::Input::Recovered);
        assert_eq!(story(&effects).last().map(String::as_str), Some(expected));
    }
}

/// A supervisor whose runs have this budget.
fn limited(budget: Budget) -> Sim {
    let mut sim = Sim::new(Abilities { budget, ..abilities(AnswerMode::Structured) });
    sim.say("go");
    sim
}

fn completed(sim: &Sim) -> String {
    match sim.outcome() {
        Some(Outcome::Completed { text, .. }) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_run_reads_how_many_calls_are_left_and_must_answer_without_any() {
    let mut sim = limited(Budget { calls: Some(5), ..Budget::default() });
    for at in 0..4 {
        let id = format!("c{at}");
        sim.model("", &[(&id, "search", &json!({"query": at}).to_string())]);
        sim.tool(&id, "text");
    }
    assert_eq!(sim.result("c2"), "text");
    assert_eq!(
        sim.result("c3"),
        "text\n\n[Budget] Left for this request: 1 of 5 calls. Do what matters most with it, then answer."
    );
    sim.model("", &[("c4", "search", "{}"), ("c5", "task", &crate::sim::task("jira", "look"))]);
    let effects = sim.tool("c4", "text");
    let reason = "the budget of 5 calls for this request is used up";
    assert_eq!(story(&effects)[1..], [format!("limited by calls: {reason}"), "ask without tools".to_owned()]);
    assert!(sim.result("c5").starts_with("[Budget used up]"), "{}", sim.result("c5"));
    sim.model("It is so.", &[]);
    assert_eq!(completed(&sim), format!("It is so.\n\n[This answer may be incomplete: {reason}.]"));
    sim.say("again");
    sim.model("", &[("n", "search", "{}")]);
    sim.tool("n", "text");
    sim.model("", &[("a", "PlatformEngineerResponse", &answer("Whole."))]);
    assert_eq!(completed(&sim), "Whole.");
}

#[test]
fn a_model_that_does_not_answer_even_then_leaves_an_honest_partial_answer() {
    let mut sim = limited(Budget { calls: Some(1), ..Budget::default() });
    sim.model("", &[("t", "task", &crate::sim::task("jira", "look"))]);
    sim.agent_answers("t", "Two tickets are open.");
    sim.model("", &[]);
    let text = completed(&sim);
    assert!(text.contains("the budget of 1 calls for this request is used up"), "{text}");
    assert!(text.ends_with("Two tickets are open."), "{text}");
}

#[test]
fn tokens_and_money_are_counted_with_those_of_delegations() {
    // A turn of the stand-in reads 10 tokens and writes 1.
    let price = Price { input: 1_000_000, cached: 0, output: 10_000_000 };
    let prices: std::collections::BTreeMap<_, _> = [("model".to_owned(), price)].into();
    for (budget, reason) in [
        (Budget { tokens: Some(11), ..Budget::default() }, "limited by tokens: the budget of 11 tokens"),
        (
            Budget { cost: Some(20_000_000), prices: prices.clone(), ..Budget::default() },
            "limited by cost: the budget of USD 0.00002 for",
        ),
    ] {
        let mut sim = limited(budget);
        sim.model("", &[("c", "search", "{}")]);
        let effects = story(&sim.tool("c", "text"));
        assert!(effects[1].starts_with(reason), "{effects:?}");
    }
    let mut sim = limited(Budget { tokens: Some(1000), cost: Some(u64::MAX), prices, ..Budget::default() });
    sim.model("", &[("t", "task", &crate::sim::task("jira", "look"))]);
    let left = sim.state.remaining_budget().unwrap();
    assert_eq!((left.tokens, left.cost, left.calls), (Some(989), Some(u64::MAX - 20_000_000), None));
    sim.delegate("t", DelegateUpdate::Spent { spent: Spent { calls: 7, tokens: 989, cost: 5 } });
    let effects = story(&sim.agent_answers("t", "Done."));
    assert!(effects.iter().any(|line| line.starts_with("limited by tokens")), "{effects:?}");
    assert_eq!(sim.state.counters.spent, Spent { calls: 8, tokens: 1000, cost: 20_000_005 });
}

#[test]
fn a_model_that_a_tool_has_asked_counts() {
    let price = Price { input: 2, cached: 0, output: 5 };
    let prices = [("small".to_owned(), price)].into();
    let mut sim = limited(Budget { tokens: Some(131), cost: Some(1000), prices, ..Budget::default() });
    sim.model("", &[("c", "search", "{}")]);
    let usage = Usage { input_tokens: 100, output_tokens: 20, ..Usage::default() };
    let model_use = Some(ModelUse { model: "openai/small".to_owned(), usage });
    let output = ToolOutput { model_use, ..ToolOutput::ok("4") };
    let effects = story(&sim.feed(Input::ToolFinished { call: "c".to_owned(), output, time_ms: 0 }));
    assert_eq!(sim.state.counters.spent, Spent { calls: 1, tokens: 131, cost: 300 });
    assert!(effects.iter().any(|line| line.starts_with("limited by tokens")), "{effects:?}");
}

#[test]
fn little_time_is_reported_with_the_next_results_and_its_end_ends_the_run() {
    let mut sim = limited(Budget::default());
    sim.model("", &[("c", "search", "{}")]);
    sim.feed(Input::TimeLeft { seconds: 12 });
    sim.tool("c", "text");
    assert!(sim.result("c").contains("12 seconds are left"), "{}", sim.result("c"));
    let effects = story(&sim.feed(Input::Deadline));
    assert_eq!(effects, ["limited by time: the time for this request is up", "ask without tools"]);
    sim.model("It is so.", &[]);
    assert_eq!(
        completed(&sim),
        "It is so.\n\n[This answer may be incomplete: the time for this request is up.]"
    );
}
