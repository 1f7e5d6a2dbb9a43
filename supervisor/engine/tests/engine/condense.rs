//! Conversations that outgrow the context of their model.

use caipe_engine::{AnswerMode, Effect, Outcome};
use caipe_model::ModelErrorKind;

use crate::sim::{Sim, abilities, events, reloaded, story};

/// A conversation whose model has a small context.
fn sim(condense: bool) -> Sim {
    let mut abilities = abilities(AnswerMode::Plain);
    abilities.limits.context_tokens = 4000;
    abilities.limits.condense = condense;
    Sim::new(abilities)
}

/// One turn of a person and the model, of about 600 tokens.
fn turn(sim: &mut Sim, at: usize) {
    sim.say(&format!("request {at}: {}", "words ".repeat(200)));
    if sim.state.condensing.is_some() {
        sim.model("The summary.", &[]);
    }
    sim.model(&format!("answer {at}: {}", "words ".repeat(200)), &[]);
}

#[test]
fn what_is_left_out_is_stored_and_named() {
    let mut sim = sim(false);
    (0..3).for_each(|at| turn(&mut sim, at));
    assert_eq!(sim.state.earlier.note(), None);
    for at in 3..200 {
        turn(&mut sim, at);
        let messages: usize = sim.state.messages.iter().map(|message| message.plain_text().len()).sum();
        let tokens = (messages + sim.state.earlier.note().map_or(0, |note| note.len())) / 4;
        assert!(tokens < 4000, "turn {at}: {tokens}");
    }
    let note = sim.state.earlier.note().unwrap();
    assert!(note.contains("/.history") && note.contains("request 190:"), "{note}");
    sim.say("what was request 3?");
    sim.model("", &[("g", "grep", r#"{"pattern": "request 3:", "path": "/.history"}"#)]);
    assert!(sim.result("g").contains("User: request 3: words"), "{}", sim.result("g"));
    assert_eq!(reloaded(&sim.state), sim.state);
}

#[test]
fn a_model_summarizes_before_the_turn() {
    let mut sim = sim(true);
    (0..3).for_each(|at| turn(&mut sim, at));
    while sim.state.condensing.is_none() {
        let effects = sim.say(&"words ".repeat(400));
        if sim.state.condensing.is_some() {
            assert!(matches!(effects.as_slice(), [Effect::CallModel { tools: false, .. }]), "{effects:?}");
            break;
        }
        sim.model("answer", &[]);
    }
    assert!(sim.state.condensing.as_ref().unwrap().contains("User: request 0:"));
    assert_eq!(sim.delta("The cluster"), [], "nobody sees the summary");
    let effects = sim.model("The cluster is blue.", &[]);
    assert_eq!(story(&effects), ["ask"]);
    assert!(sim.state.earlier.note().unwrap().contains("Summary:\nThe cluster is blue."));
    sim.model("answer", &[]);
    assert!(matches!(sim.outcome(), Some(Outcome::Completed { text, .. }) if text == "answer"));
}

#[test]
fn a_failed_summary_or_a_crash_loses_nothing() {
    for crash in [false, true] {
        let mut sim = sim(true);
        (0..3).for_each(|at| turn(&mut sim, at));
        while sim.state.condensing.is_none() {
            sim.say(&"words ".repeat(400));
            if sim.state.condensing.is_none() {
                sim.model("answer", &[]);
            }
        }
        if crash {
            sim.state = reloaded(&sim.state);
            sim.feed(caipe_engine::Input::Recovered);
            assert!(sim.state.condensing.is_some(), "the summary is asked for again");
            sim.model("Again.", &[]);
        } else {
            sim.model_fails(ModelErrorKind::Overloaded, "busy");
        }
        let effects = sim.model("answer", &[]);
        assert!(!events(&effects).is_empty());
        assert!(matches!(sim.outcome(), Some(Outcome::Completed { text, .. }) if text == "answer"));
    }
}
