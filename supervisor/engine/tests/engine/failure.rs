//! Model turns that fail.

use caipe_engine::AnswerMode;
use caipe_model::{ModelErrorKind, Role};

use crate::sim::{Sim, abilities, answer, story, task};

/// The end of a run whose model failed like this, without the provider's words.
fn failed(kind: ModelErrorKind) -> String {
    let reason = match kind {
        ModelErrorKind::Auth => {
            "the language model does not accept the supervisor's credentials, or there are none"
        }
        ModelErrorKind::RateLimited => "the language model gets too many requests; try again in a while",
        ModelErrorKind::Overloaded => {
            "the language model is overloaded or out of order; try again in a while"
        }
        ModelErrorKind::Truncated => "the answer of the language model broke off",
        ModelErrorKind::Transport => "the language model cannot be reached, or the connection broke",
        other => panic!("{other:?}"),
    };
    format!("failed: Agent execution failed: {reason}")
}

fn begun() -> Sim {
    let mut sim = Sim::new(abilities(AnswerMode::Structured));
    sim.say("go");
    sim
}

#[test]
fn a_broken_turn_is_tried_once_more() {
    for kind in [ModelErrorKind::Truncated, ModelErrorKind::Transport] {
        let mut sim = begun();
        sim.delta("Wel");
        assert_eq!(story(&sim.model_fails(kind, "broken pipe")), ["reset", "ask"]);
        assert_eq!(sim.turn(), 2);
        sim.delta("Well");
        let end = sim.model_fails(kind, "broken pipe");
        assert_eq!(story(&end), [failed(kind), "finish".to_owned()]);
    }
}

#[test]
fn a_turn_that_showed_nothing_is_not_reset() {
    let mut sim = begun();
    assert_eq!(story(&sim.model_fails(ModelErrorKind::Transport, "x")), ["ask"]);
}

#[test]
fn after_a_good_turn_a_broken_one_may_be_tried_again() {
    let mut sim = begun();
    sim.model_fails(ModelErrorKind::Transport, "x");
    sim.model("", &[("a", "search", "{}")]);
    sim.tool("a", "found");
    assert_eq!(story(&sim.model_fails(ModelErrorKind::Transport, "x")), ["ask"]);
}

#[test]
fn with_results_the_model_gets_a_last_turn() {
    let mut sim = begun();
    sim.model("", &[("a", "search", "{}")]);
    sim.tool("a", "found");
    let cause = "e".repeat(500);
    assert_eq!(story(&sim.model_fails(ModelErrorKind::Overloaded, &cause)), ["ask without tools"]);
    let note = sim.state.messages.last().unwrap().plain_text();
    assert!(
        note.starts_with(&format!("[Recovery after error: {}] You have finished", "e".repeat(200))),
        "{note}"
    );
    let end = sim.model_fails(ModelErrorKind::Overloaded, "still overloaded");
    assert_eq!(story(&end), [failed(ModelErrorKind::Overloaded), "finish".to_owned()]);
    assert!(sim.state.messages.iter().all(|message| !message.plain_text().starts_with("[Recovery")));
}

#[test]
fn when_the_last_turn_fails_the_agents_words_are_the_answer() {
    let mut sim = begun();
    sim.model("", &[("a", "task", &task("jira", "x"))]);
    sim.agent_answers("a", "Three tickets.");
    sim.model_fails(ModelErrorKind::RateLimited, "429");
    let end = story(&sim.model_fails(ModelErrorKind::RateLimited, "429"));
    assert!(
        end[1].starts_with(
            "completed Recovered: I ran into an issue while processing your request: the language model gets too many \
             requests"
        ),
        "{end:?}"
    );
    assert!(end[1].ends_with("Three tickets.") && !end.concat().contains("429"), "{end:?}");
}

#[test]
fn without_results_or_key_the_run_fails() {
    let mut sim = begun();
    assert_eq!(
        story(&sim.model_fails(ModelErrorKind::RateLimited, "openai/gpt: 429")),
        [failed(ModelErrorKind::RateLimited), "finish".to_owned()]
    );
    let mut sim = begun();
    sim.model("", &[("a", "search", "{}")]);
    sim.tool("a", "found");
    assert_eq!(
        story(&sim.model_fails(ModelErrorKind::Auth, "key refused")),
        [failed(ModelErrorKind::Auth), "finish".to_owned()]
    );
    let mut sim = begun();
    sim.model("", &[("t", "write_todos", r#"{"todos":[{"content":"x","status":"pending"}]}"#)]);
    let end = story(&sim.model_fails(ModelErrorKind::Overloaded, "503"));
    assert_eq!(end[0], "plan GivenUp: [Supervisor] x Failed");
    assert!(end[1].starts_with("failed"), "a plan is no result: {end:?}");
}

#[test]
fn an_overflow_shortens_the_conversation_and_tries_once() {
    let mut sim = begun();
    for round in 0..6 {
        let id = format!("s{round}");
        sim.model("", &[(id.as_str(), "search", &serde_json::json!({ "q": round }).to_string())]);
        sim.tool(&id, &"x".repeat(20_000));
    }
    let before = sim.state.messages.len();
    assert_eq!(story(&sim.model_fails(ModelErrorKind::ContextOverflow, "too long")), ["ask"]);
    assert_eq!(sim.state.messages[0].plain_text(), "go", "the request stays");
    assert!(sim.state.messages.len() <= before);
    assert!(sim.results().iter().all(|result| result.content.len() < 5000));
    assert_eq!(story(&sim.model_fails(ModelErrorKind::ContextOverflow, "too long")), ["ask without tools"]);
}

#[test]
fn an_overflow_that_cannot_be_helped_fails() {
    let mut sim = begun();
    assert!(story(&sim.model_fails(ModelErrorKind::ContextOverflow, "too long"))[0].starts_with("failed"));
}

#[test]
fn a_long_conversation_is_trimmed_before_it_is_sent() {
    let mut abilities = abilities(AnswerMode::Plain);
    abilities.limits.context_tokens = 1000;
    let mut sim = Sim::new(abilities);
    for round in 0..10 {
        sim.say(&format!("question {round}"));
        let id = format!("w{round}");
        sim.model("", &[(id.as_str(), "search", r#"{"q":1}"#)]);
        sim.tool(&id, &"x".repeat(400));
        sim.model("ok", &[]);
    }
    assert!(sim.state.messages.len() < 30, "{}", sim.state.messages.len());
    assert_eq!(sim.state.messages[0].role, Role::User, "providers want a user's message first");
    let calls = sim.state.messages.iter().flat_map(|message| message.tool_calls()).count();
    assert_eq!(calls, sim.results().len());
}

#[test]
fn a_failure_of_another_turn_is_ignored() {
    let mut sim = begun();
    sim.model("", &[("r", "ResponseFormat", &answer("ok"))]);
    assert!(sim.model_fails(ModelErrorKind::Transport, "late").is_empty());
}
