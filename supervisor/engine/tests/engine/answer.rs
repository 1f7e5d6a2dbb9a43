//! How the final answer is recognised and emitted.

use caipe_engine::{AnswerMode, AnswerOrigin, EventKind, Input, Outcome, Phase, TextRole};

use crate::sim::{Sim, abilities, answer, story, task};

fn asked(mode: AnswerMode) -> Sim {
    let mut sim = Sim::new(abilities(mode));
    assert_eq!(story(&sim.say("hello")), ["ask"]);
    sim
}

#[test]
fn a_structured_answer_streams_out_of_the_response_call() {
    let mut sim = asked(AnswerMode::Structured);
    assert_eq!(story(&sim.delta("Let me see. ")), ["Plain: Let me see. "]);
    assert_eq!(story(&sim.call_start("r", "responseformat")), ["composing"]);
    assert!(sim.call_arguments("r", "{\"is_task_complete\": true, \"content\": \"One two th").len() == 1);
    assert_eq!(story(&sim.call_arguments("r", "ree\\nfou")), ["Answer: three\n"]);
    assert!(sim.call_arguments("r", "r\"}").is_empty());
    let end = sim.model(
        "Let me see. ",
        &[("r", "responseformat", "{\"is_task_complete\": true, \"content\": \"One two three\\nfour\"}")],
    );
    assert_eq!(story(&end), ["Answer: four", "completed Structured: One two three\nfour", "finish"]);
    assert_eq!(sim.state.phase, Phase::Idle);
    assert_eq!(sim.results().len(), 1, "the response call has a result");
}

#[test]
fn an_answer_that_reached_the_output_limit_says_that_it_is_cut_off() {
    for (mode, text) in [(AnswerMode::Plain, "One two"), (AnswerMode::Marker, "[FINAL ANSWER]One two")] {
        let mut sim = asked(mode);
        sim.delta(text);
        let mut completion = crate::sim::completion(text, &[]);
        completion.reason = caipe_model::FinishReason::Length;
        let turn = sim.turn();
        sim.feed(Input::ModelFinished { turn, completion });
        let Some(Outcome::Completed { text: answer, .. }) = sim.outcome() else { panic!("{mode:?}") };
        let note = "[The answer is cut off: it reached the output limit of the language model.]";
        assert_eq!(answer, format!("One two\n\n{note}"), "{mode:?}");
        assert!(shown(&sim).ends_with(note), "{mode:?}: a client that reads the stream sees it too");
    }
}

#[test]
fn an_answer_that_was_not_streamed_is_reported_whole() {
    let mut sim = asked(AnswerMode::Structured);
    let end = sim.model("", &[("r", "PlatformEngineerResponse", &answer("All good."))]);
    assert_eq!(story(&end), ["composing", "Answer: All good.", "completed Structured: All good.", "finish"]);
}

#[test]
fn the_answer_may_stand_under_other_names() {
    for (arguments, text) in [
        (r#"{"message":"m"}"#, "m"),
        (r#"{"response":"r"}"#, "r"),
        (r#"{"message":"m","content":"c"}"#, "c"),
        (r#"{"content":" ","response":"r"}"#, "r"),
    ] {
        let mut sim = asked(AnswerMode::Structured);
        sim.call_start("r", "ResponseFormat");
        sim.call_arguments("r", arguments);
        sim.model("", &[("r", "ResponseFormat", arguments)]);
        let shown = shown(&sim);
        assert_eq!(shown, text, "{arguments}");
        let expected = Outcome::Completed { text: text.to_owned(), origin: AnswerOrigin::Structured };
        assert_eq!(sim.outcome(), Some(expected), "{arguments}");
    }
}

/// What a client shows: all text since the last reset.
fn shown(sim: &Sim) -> String {
    sim.events().into_iter().fold(String::new(), |shown, event| match event.kind {
        EventKind::Text { text, .. } => shown + &text,
        EventKind::TextReset => String::new(),
        _ => shown,
    })
}

#[test]
fn an_answer_beside_other_calls_is_taken_back() {
    let mut sim = asked(AnswerMode::Structured);
    sim.call_start("r", "ResponseFormat");
    sim.call_arguments("r", "{\"content\":\"too early. ");
    let effects = sim.model("", &[("r", "ResponseFormat", &answer("too early. ")), ("s", "search", "{}")]);
    assert_eq!(story(&effects), ["reset", "search starts", "run search s"]);
    sim.tool("s", "found");
    assert!(sim.result("r").starts_with("Not taken"));
    assert_eq!(sim.result("s"), "found");
}

#[test]
fn an_answer_beside_the_last_todo_list_counts() {
    let mut sim = asked(AnswerMode::Structured);
    let todos = r#"{"todos":[{"content":"[Jira] Look","status":"completed"}]}"#;
    let end = sim.model("", &[("t", "write_todos", todos), ("r", "ResponseFormat", &answer("Done."))]);
    assert_eq!(
        story(&end),
        [
            "todo done: [Jira] Look",
            "plan Todos first: [Jira] Look Completed",
            "composing",
            "Answer: Done.",
            "plan Closing: [Jira] Look Completed",
            "completed Structured: Done.",
            "finish"
        ]
    );
}

#[test]
fn a_response_that_is_no_json_is_asked_for_again() {
    let mut sim = asked(AnswerMode::Structured);
    sim.call_start("r", "ResponseFormat");
    sim.call_arguments("r", "{\"content\":\"half an answer");
    let effects = sim.model("", &[("r", "ResponseFormat", "{\"content\":\"half an answer")]);
    assert_eq!(story(&effects), ["reset", "ask"]);
    assert!(sim.result("r").contains("JSON object"));
}

#[test]
fn an_answer_longer_than_the_model_can_write_is_stored_as_far_as_it_goes() {
    let mut sim = asked(AnswerMode::Structured);
    sim.call_start("r", "ResponseFormat");
    sim.call_arguments("r", "{\"content\":\"half an answer");
    let mut completion =
        crate::sim::completion("", &[("r", "ResponseFormat", "{\"content\":\"half an answer")]);
    completion.reason = caipe_model::FinishReason::Length;
    let turn = sim.turn();
    let end = sim.feed(caipe_engine::Input::ModelFinished { turn, completion });
    let note = "\n\n[The answer is cut off: it reached the output limit of the language model.]";
    assert_eq!(
        story(&end),
        [
            format!("Answer: answer{note}"),
            format!("completed Structured: half an answer{note}"),
            "finish".to_owned()
        ]
    );
}

#[test]
fn marker_mode_tells_narration_from_answer() {
    let mut sim = asked(AnswerMode::Marker);
    assert!(sim.delta("I look.").is_empty(), "fourteen characters wait");
    assert_eq!(story(&sim.delta(" Then [FINAL_ANS")), ["Narration: I look. T"]);
    assert_eq!(story(&sim.delta("WER]\n\nIt ")), ["Narration: hen ", "Answer: It "]);
    let end = sim.model("I look. Then [FINAL_ANSWER]\n\nIt is.", &[]);
    assert_eq!(story(&end), ["Answer: is.", "completed Marked: It is.", "finish"]);
}

#[test]
fn marker_mode_lets_go_of_narration_at_a_call() {
    let mut sim = asked(AnswerMode::Marker);
    sim.delta("I look.");
    assert_eq!(story(&sim.call_start("s", "search")), ["Narration: I look."]);
}

#[test]
fn text_without_marker_or_tool_is_the_models_answer() {
    for (mode, role) in [
        (AnswerMode::Structured, TextRole::Plain),
        (AnswerMode::Marker, TextRole::Narration),
        (AnswerMode::Plain, TextRole::Plain),
    ] {
        let mut sim = asked(mode);
        let end = sim.model("It is fine.", &[]);
        let expected = ["Text: It is fine.", "completed Model: It is fine.", "finish"];
        assert_eq!(story(&end), expected.map(|line| line.replace("Text", &format!("{role:?}"))), "{mode:?}");
    }
}

#[test]
fn text_after_several_agents_is_a_synthesis() {
    let mut sim = asked(AnswerMode::Structured);
    sim.model("", &[("a", "task", &task("jira", "x")), ("b", "task", &task("github", "y"))]);
    sim.agent_answers("b", "two");
    sim.agent_answers("a", "one");
    sim.model("Both.", &[]);
    let expected = Outcome::Completed { text: "Both.".to_owned(), origin: AnswerOrigin::Synthesis };
    assert_eq!(sim.outcome(), Some(expected));
}

#[test]
fn an_empty_response_falls_back_to_the_one_agent() {
    let mut sim = asked(AnswerMode::Structured);
    sim.model("", &[("a", "task", &task("jira", "x"))]);
    sim.agent_answers("a", "[FINAL ANSWER]\nThree tickets.");
    sim.model("", &[("r", "ResponseFormat", "{}")]);
    let expected = Outcome::Completed { text: "Three tickets.".to_owned(), origin: AnswerOrigin::Structured };
    assert_eq!(sim.outcome(), Some(expected));
}

#[test]
fn an_empty_answer_gets_one_more_turn_and_then_an_honest_sentence() {
    for empty in ["{}", r#"{"content":" "}"#] {
        let mut sim = asked(AnswerMode::Structured);
        assert_eq!(story(&sim.model("", &[("r", "ResponseFormat", empty)])), ["ask"]);
        assert!(sim.result("r").starts_with("The answer is empty."), "{}", sim.result("r"));
        let end = story(&sim.model("", &[("s", "ResponseFormat", empty)]));
        assert!(end[1].starts_with("Answer: I have no answer: "), "{end:?}");
        assert!(end[2].starts_with("completed Partial: I have no answer: "), "{end:?}");
    }
    let mut sim = asked(AnswerMode::Structured);
    sim.model("", &[("r", "ResponseFormat", "{}")]);
    sim.model("", &[("s", "ResponseFormat", &answer("Here."))]);
    let expected = Outcome::Completed { text: "Here.".to_owned(), origin: AnswerOrigin::Structured };
    assert_eq!(sim.outcome(), Some(expected));
}

#[test]
fn a_model_that_says_nothing_at_all_ends_with_an_honest_sentence() {
    let mut sim = asked(AnswerMode::Structured);
    for _ in 0..3 {
        sim.model("", &[]);
    }
    let end = story(&sim.model("", &[]));
    assert!(end.iter().any(|line| line.starts_with("completed Partial: I have no answer: ")), "{end:?}");
}

#[test]
fn text_beside_a_call_is_narration_where_that_is_known() {
    let mut sim = asked(AnswerMode::Structured);
    sim.call_start("s", "search");
    assert_eq!(story(&sim.delta("I search.")), ["Narration: I search."]);
    let mut whole = asked(AnswerMode::Structured);
    let effects = whole.model("I search.", &[("s", "search", "{}")]);
    assert_eq!(story(&effects), ["Narration: I search.", "search starts", "run search s"]);
}

#[test]
fn text_that_was_streamed_otherwise_than_returned_is_reported_again() {
    for (mode, returned, expected) in [
        (AnswerMode::Plain, "Hello", ["reset", "Plain: Hello", "completed Model: Hello", "finish"]),
        (
            AnswerMode::Marker,
            "[FINAL ANSWER]\nHello",
            ["reset", "Answer: Hello", "completed Marked: Hello", "finish"],
        ),
    ] {
        let mut sim = asked(mode);
        sim.delta("Helo, can I help you?");
        assert_eq!(story(&sim.model(returned, &[])), expected, "{mode:?}");
    }
}

#[test]
fn a_response_may_ask_the_user() {
    let arguments = r#"{"content":"Which project?","require_user_input":true,
        "metadata":{"user_input":true,"input_fields":[{"field_name":"project","field_description":"Its key"}]}}"#;
    let mut sim = asked(AnswerMode::Structured);
    let end = sim.model("", &[("r", "ResponseFormat", arguments)]);
    let expected =
        ["composing", "Answer: Which project?", "asks CAIPEAgentResponse", "input required", "finish"];
    assert_eq!(story(&end), expected);
    assert_eq!(sim.state.phase, Phase::Waiting);
    assert_eq!(story(&sim.say("CAIPE")), ["ask"], "a plain reply is an answer, too");
    assert!(sim.result("r").contains("next message"));
}

#[test]
fn pieces_of_another_turn_are_ignored() {
    let mut sim = asked(AnswerMode::Plain);
    let before = sim.state.clone();
    for turn in [0, 2, u32::MAX] {
        let delta = caipe_engine::ModelDelta::Text { text: "x".to_owned() };
        assert!(sim.feed(caipe_engine::Input::ModelDelta { turn, delta }).is_empty());
    }
    assert_eq!(sim.state, before);
}
