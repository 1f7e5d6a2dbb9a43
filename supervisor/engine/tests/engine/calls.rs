//! Calls and delegations.

use caipe_engine::{
    AgentName, AnswerMode, CallEnd, CallStatus, DelegateUpdate, DelegationOutcome, EventKind, Input,
    RunEvent, ToolOutput,
};
use caipe_model::{Part, Role};

use crate::sim::{Sim, abilities, answer, events, story, task};

fn begun(mode: AnswerMode) -> Sim {
    let mut sim = Sim::new(abilities(mode));
    sim.say("compare");
    sim
}

#[test]
fn parallel_results_are_read_in_call_order() {
    let mut sim = begun(AnswerMode::Structured);
    let started =
        sim.model("", &[("a", "search", r#"{"q":1}"#), ("b", "search", ""), ("c", "delete_app", "{}")]);
    assert_eq!(
        story(&started),
        [
            "search starts",
            "search starts",
            "delete_app starts",
            "run search a",
            "run search b",
            "run delete_app c"
        ]
    );
    assert_eq!(story(&sim.tool("c", "three")), ["delete_app Completed"]);
    assert_eq!(story(&sim.tool("a", "one")), ["search Completed"]);
    assert_eq!(story(&sim.tool("b", "two")), ["search Completed", "ask"]);
    let last = sim.state.messages.last().unwrap();
    assert_eq!(last.role, Role::Tool);
    let contents: Vec<String> = sim.results().into_iter().map(|result| result.content).collect();
    assert_eq!(contents, ["one", "two", "three"]);
    assert_eq!(sim.state.counters.calls["search"], 2);
    assert_eq!(sim.state.counters.steps, 3);
    assert_eq!(sim.state.counters.usage.input_tokens, 10);
}

#[test]
fn mistakes_of_the_model_are_reported_to_it_and_never_run() {
    for (name, arguments, reported) in [
        ("serach", "{}", "There are: delete_app, search, write_todos, task"),
        ("search", "{\"q\":", "failed to read the arguments of \"search\""),
        ("search", "[1]", "not an object"),
        ("search", "null", "not an object"),
        ("task", "{}", "one of: github, jira"),
        (
            "task",
            r#"{"subagent_type":"Jirra","description":"x"}"#,
            "no agent \"Jirra\". There are: github, jira.",
        ),
        ("task", r#"{"subagent_type":"jira","description":"  "}"#, "give \"description\""),
        ("write_todos", r#"{"todos":"none"}"#, "array of objects"),
        ("write_todos", r#"{"todos":[{"content":" "}]}"#, "entry 0 has no content"),
        ("CAIPEAgentResponse", r#"{"response":"?"}"#, "ERROR: No input_fields provided."),
        ("request_user_input", r#"{"description":"?","fields":[{}]}"#, "fields[0]: give field_name"),
        ("request_user_input", r#"{"description":"?"}"#, "Call the tool again with fields,"),
    ] {
        let mut sim = begun(AnswerMode::Structured);
        assert_eq!(story(&sim.model("", &[("x", name, arguments)])), ["ask"], "{name} {arguments}");
        assert!(sim.result("x").contains(reported), "{name} {arguments}: {}", sim.result("x"));
        assert!(sim.results()[0].is_error);
    }
}

#[test]
fn a_long_list_of_tools_is_cut_in_errors() {
    let mut abilities = abilities(AnswerMode::Plain);
    abilities.tools = (0..500).map(|n| format!("tool_{n:03}")).collect();
    let mut sim = Sim::new(abilities);
    sim.say("go");
    sim.model("", &[("x", &"n".repeat(10_000), "{}")]);
    let reported = sim.result("x");
    assert!(reported.contains("tool_049 and ") && reported.len() < 1000, "{reported}");
}

#[test]
fn agents_are_found_whatever_the_case() {
    let mut sim = begun(AnswerMode::Structured);
    let effects = sim.model("", &[("a", "task", &task(" Jira ", "list my tickets"))]);
    assert_eq!(
        story(&effects),
        ["plan Delegation first: [Jira] list my tickets InProgress", "jira starts", "delegate jira a"]
    );
    assert_eq!(
        story(&sim.agent_answers("a", "three")),
        ["jira Completed", "plan TaskCompleted: [Jira] list my tickets Completed", "ask"]
    );
    assert_eq!(sim.result("a"), "three");
}

#[test]
fn an_agents_failure_is_a_result_for_the_model() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "task", &task("jira", "x")), ("b", "task", &task("github", "y"))]);
    let outcome = DelegationOutcome::Failed { reason: "no connection".to_owned() };
    let effects = sim.delegate("a", DelegateUpdate::Finished { outcome });
    assert_eq!(
        story(&effects),
        ["jira Failed", "plan TaskCompleted: [Jira] x Failed, [Github] y InProgress"]
    );
    let EventKind::DelegationFinished { text, .. } = &events(&effects)[0].kind else { panic!() };
    assert_eq!(text, "no connection");
    assert_eq!(
        story(&sim.delegate("b", DelegateUpdate::Finished { outcome: DelegationOutcome::Canceled }))[0],
        "github Canceled"
    );
    assert_eq!(sim.result("a"), "ERROR: agent jira: no connection");
    assert_eq!(sim.state.answers, []);
}

#[test]
fn an_agents_events_carry_its_name() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "task", &task("jira", "x"))]);
    let event = RunEvent::own(EventKind::ToolStarted { call: "t".to_owned(), tool: "get_issue".to_owned() });
    let before = sim.state.clone();
    let effects = sim.delegate("a", DelegateUpdate::Event { event: event.clone(), place: None });
    assert_eq!(events(&effects), [event.within(&AgentName::new("jira"))]);
    assert_eq!(sim.state, before, "an event that is not saved must not change the state");
    assert!(
        sim.delegate("b", DelegateUpdate::Event { event: RunEvent::own(EventKind::TextReset), place: None })
            .is_empty()
    );
}

#[test]
fn what_an_agent_says_to_a_tool_is_reported_while_the_tool_runs() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "search", "{}"), ("b", "task", &task("jira", "x"))]);
    let (agent, text) = (AgentName::new("data"), "🔍 Step 1".to_owned());
    let says =
        |call: &str| Input::ToolProgress { call: call.to_owned(), agent: agent.clone(), text: text.clone() };
    let before = sim.state.clone();
    let reported = events(&sim.feed(says("a")));
    assert_eq!(
        reported,
        [RunEvent::own(EventKind::Noticed { text: text.clone(), end: None }).within(&agent)]
    );
    assert_eq!(sim.state, before, "what is not saved must not change the state");
    assert!(sim.feed(says("b")).is_empty(), "a delegation tells by itself");
    assert!(sim.feed(says("c")).is_empty());
    sim.tool("a", "done");
    assert!(sim.feed(says("a")).is_empty(), "a tool that is done says no more");
}

#[test]
fn a_call_that_the_client_answers_is_emitted_while_it_runs() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "search", r#"{"query":"x"}"#), ("b", "task", &task("jira", "x"))]);
    let asks = |call: &str| Input::CallClient { call: call.to_owned() };
    let before = sim.state.clone();
    assert_eq!(story(&sim.feed(asks("a"))), [r#"asks the client: search {"query":"x"}"#]);
    assert_eq!(sim.state, before, "what is not saved must not change the state");
    assert!(sim.feed(asks("b")).is_empty() && sim.feed(asks("c")).is_empty());
    sim.tool("a", "done");
    assert!(sim.feed(asks("a")).is_empty(), "it has its result");
}

#[test]
fn late_and_doubled_results_are_ignored() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "search", "{}"), ("b", "search", "{}")]);
    sim.tool("a", "first");
    assert!(sim.tool("a", "second").is_empty());
    assert!(sim.agent_answers("b", "not an agent").is_empty());
    sim.tool("b", "x");
    assert!(sim.tool("b", "late").is_empty());
    assert_eq!(sim.result("a"), "first");
}

#[test]
fn ids_that_a_model_uses_again_are_made_unique() {
    let mut sim = begun(AnswerMode::Structured);
    let started =
        sim.model("", &[("call_0", "search", "{}"), ("call_0", "search", "{}"), ("", "search", "{}")]);
    assert_eq!(story(&started)[3..], ["run search call_0", "run search call_1_0", "run search call_1_1"]);
    for id in ["call_0", "call_1_0", "call_1_1"] {
        sim.tool(id, id);
    }
    let again = sim.model("", &[("call_0", "search", "{}")]);
    assert_eq!(story(&again), ["search starts", "run search call_2_0"]);
    let asked: Vec<String> = sim
        .state
        .messages
        .iter()
        .flat_map(|message| message.tool_calls())
        .map(|call| call.id.clone())
        .collect();
    assert_eq!(asked, ["call_0", "call_1_0", "call_1_1", "call_2_0"], "the conversation has the ids, too");
}

#[test]
fn long_results_are_cut() {
    let mut abilities = abilities(AnswerMode::Structured);
    abilities.limits.tool_output_chars = 3000;
    let mut sim = Sim::new(abilities);
    sim.say("go");
    sim.model("", &[("a", "search", "{}")]);
    let effects = sim.tool("a", &"ä".repeat(4000));
    let result = sim.result("a");
    assert!(result.starts_with(&"ä".repeat(3000)) && !result.contains(&"ä".repeat(3001)), "{result}");
    assert!(result.ends_with("\n\n[Output truncated]"), "{result}");
    let EventKind::ToolFinished { output: Some(output), .. } = &events(&effects)[0].kind else { panic!() };
    assert_eq!(*output, format!("{}...\n[Output truncated]", "ä".repeat(2000)));
}

#[test]
fn an_empty_result_says_so() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "search", "{}")]);
    sim.tool("a", "\n");
    assert_eq!(sim.result("a"), "(no output)");
}

#[test]
fn a_failed_tool_ends_as_failed() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "search", "{}")]);
    let output = ToolOutput::error("502");
    let effects = sim.feed(Input::ToolFinished { call: "a".to_owned(), output, time_ms: 0 });
    assert_eq!(story(&effects), ["search Failed", "ask"]);
    assert!(sim.results()[0].is_error);
}

#[test]
fn more_calls_than_one_turn_may_have_are_not_run() {
    let mut sim = begun(AnswerMode::Plain);
    let ids: Vec<String> = (0..80).map(|n| format!("c{n}")).collect();
    let calls: Vec<(&str, &str, &str)> = ids.iter().map(|id| (id.as_str(), "search", "{}")).collect();
    sim.model("", &calls);
    let running = sim.state.calls.iter().filter(|call| call.status == CallStatus::Running).count();
    assert_eq!(running, 64);
    for id in &ids {
        sim.tool(id, "ok");
    }
    assert_eq!(sim.results().len(), 80);
}

#[test]
fn the_limit_of_steps_ends_in_an_answer_from_what_there_is() {
    let mut abilities = abilities(AnswerMode::Structured);
    abilities.limits.steps = 3;
    let mut sim = Sim::new(abilities);
    sim.say("loop");
    sim.model("", &[("a", "search", "{}")]);
    assert_eq!(story(&sim.tool("a", "found"))[1..], ["ask"]);
    assert_eq!(story(&sim.model("", &[("b", "search", "{}")])), ["ask without tools"]);
    assert!(sim.result("b").contains("limit of steps"));
    let note = sim.state.messages.last().unwrap();
    assert_eq!(note.role, Role::User);
    assert!(note.plain_text().contains("Do not call any more tools."));
    assert_eq!(story(&sim.delta("It was found.")), ["Answer: It was found."]);
    let end = sim.model("It was found.", &[]);
    assert_eq!(story(&end), ["completed Model: It was found.", "finish"]);
    assert!(!sim.state.messages.iter().any(|message| message.plain_text().contains("any more tools")));
}

#[test]
fn a_last_turn_may_still_use_the_response_tool() {
    let mut abilities = abilities(AnswerMode::Structured);
    abilities.limits.steps = 0;
    let mut sim = Sim::new(abilities);
    assert_eq!(story(&sim.say("go")), ["ask without tools"]);
    let end = sim.model("", &[("r", "ResponseFormat", &answer("ok")), ("s", "search", "{}")]);
    assert_eq!(story(&end), ["composing", "Answer: ok", "completed Structured: ok", "finish"]);
    assert_eq!(sim.results().len(), 2);
}

#[test]
fn a_last_turn_without_words_says_that_the_run_was_cut_short() {
    let mut abilities = abilities(AnswerMode::Structured);
    abilities.limits.steps = 2;
    let mut sim = Sim::new(abilities);
    sim.say("go");
    sim.model("", &[("a", "task", &task("jira", "x"))]);
    sim.agent_answers("a", "Three tickets.");
    let end = sim.model("", &[]);
    let story = story(&end);
    assert!(story[1].starts_with("completed Partial: I ran into an issue"), "{story:?}");
    assert!(story[1].ends_with("Three tickets."), "{story:?}");
}

#[test]
fn empty_turns_are_counted_in_a_row() {
    let mut sim = begun(AnswerMode::Structured);
    assert_eq!(story(&sim.model("", &[])), ["ask"]);
    assert_eq!(story(&sim.model(" \n", &[])), ["Plain:  \n", "ask"]);
    assert_eq!(story(&sim.model("", &[("a", "search", "{}")])).len(), 2);
    sim.tool("a", "x");
    assert_eq!(story(&sim.model("", &[])), ["ask"]);
    assert_eq!(story(&sim.model("", &[])), ["ask"]);
    assert_eq!(
        story(&sim.model("", &[])),
        ["limited by empty_turns: the model said nothing, several times", "ask without tools"]
    );
    let empty = sim
        .state
        .messages
        .iter()
        .filter(|message| message.role == Role::Assistant && message.tool_calls().count() == 0);
    assert_eq!(empty.count(), 0, "an empty message never goes back to a provider");
}

#[test]
fn cancel_ends_every_call() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "search", "{}"), ("b", "task", &task("jira", "x")), ("c", "search", "{}")]);
    sim.tool("c", "done");
    let effects = sim.feed(Input::Cancel);
    let plan = "plan GivenUp: [Jira] x Failed";
    assert_eq!(
        story(&effects),
        ["search Canceled", "jira Canceled", "abort a b", plan, "canceled", "finish"]
    );
    assert_eq!(sim.result("a"), "Tool 'search' did not complete (session was interrupted).");
    assert_eq!(sim.result("c"), "done");
    assert!(sim.feed(Input::Cancel).is_empty());
    assert_eq!(story(&sim.say("again")), ["ask"]);
}

#[test]
fn a_message_during_a_run_is_refused() {
    let mut sim = begun(AnswerMode::Structured);
    let before = sim.state.clone();
    assert!(sim.say("and another thing").is_empty());
    assert_eq!(sim.state, before);
}

#[test]
fn the_deadline_stops_calls_and_asks_for_an_answer() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "search", "{}"), ("b", "search", "{}")]);
    sim.tool("a", "found");
    let effects = sim.feed(Input::Deadline);
    assert_eq!(
        story(&effects),
        [
            "search Canceled",
            "abort b",
            "limited by time: the time for this request is up",
            "ask without tools"
        ]
    );
    sim.delta("Half an ");
    let end = sim.feed(Input::Deadline);
    assert!(story(&end)[0].starts_with("Answer: \n\nI ran into an issue"), "{:?}", story(&end));
    assert!(story(&end)[1].starts_with("completed Partial: Half an\n\nI ran into"), "{:?}", story(&end));
}

#[test]
fn the_deadline_takes_back_a_turn_under_way() {
    let mut sim = begun(AnswerMode::Structured);
    sim.delta("Well");
    assert_eq!(
        story(&sim.feed(Input::Deadline)),
        ["reset", "limited by time: the time for this request is up", "ask without tools"]
    );
    assert!(
        sim.feed(Input::ModelFinished { turn: 1, completion: crate::sim::completion("Well", &[]) })
            .is_empty()
    );
}

#[test]
fn every_start_has_its_end() {
    let mut sim = begun(AnswerMode::Structured);
    sim.model("", &[("a", "write_file", r#"{"file_path":"/x","content":"y"}"#), ("b", "ls", "{}")]);
    let ends: Vec<CallEnd> = sim
        .events()
        .into_iter()
        .filter_map(
            |event| if let EventKind::ToolFinished { end, .. } = event.kind { Some(end) } else { None },
        )
        .collect();
    assert_eq!(ends, [CallEnd::Completed; 2]);
    assert_eq!(sim.result("b"), "/x (1 bytes)");
    let parts: Vec<&Part> = sim.state.messages.iter().flat_map(|message| &message.parts).collect();
    assert_eq!(parts.len(), 5);
}
