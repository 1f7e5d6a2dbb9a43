//! Which words are the answer.

use caipe_a2a::model::{Artifact, Content, Part};
use serde_json::json;

use super::*;

fn text(tell: impl FnOnce(&mut Answer)) -> Option<String> {
    let mut answer = Answer::default();
    tell(&mut answer);
    answer.text()
}

#[test]
fn a_whole_result_wins_over_pieces_and_pieces_over_status_texts() {
    let all = |answer: &mut Answer| {
        answer.add_status_text("looking".to_owned());
        answer.piece("a", false, "pie".to_owned(), Join::Add);
        answer.piece("a", false, "ces".to_owned(), Join::Add);
        answer.set_final_status("done".to_owned());
    };
    assert_eq!(
        text(|answer| {
            all(answer);
            answer.set_result(ResultPriority::Own, "whole".to_owned());
        })
        .as_deref(),
        Some("whole")
    );
    assert_eq!(text(all).as_deref(), Some("pieces"));
    assert_eq!(text(|_| {}), None);
    assert_eq!(text(|answer| answer.add_status_text(" \n".to_owned())), None);
    let narrated = |answer: &mut Answer| answer.piece("a", true, "I look.".to_owned(), Join::Add);
    assert_eq!(text(narrated).as_deref(), Some("I look."), "better than nothing");
    assert_eq!(
        text(|answer| {
            narrated(answer);
            answer.piece("a", false, "3".to_owned(), Join::Add);
        })
        .as_deref(),
        Some("3")
    );
}

#[test]
fn the_older_generation_answers_in_its_status() {
    let spoken = |words: &[&str], last: &str| {
        text(|answer| {
            for word in words {
                answer.add_status_text((*word).to_owned());
            }
            answer.set_final_status(last.to_owned());
        })
    };
    assert_eq!(spoken(&["the answer"], "").as_deref(), Some("the answer"));
    assert_eq!(spoken(&["the answer"], "the answer").as_deref(), Some("the answer"), "once");
    assert_eq!(spoken(&["one"], "two").as_deref(), Some("one\ntwo"));
    assert_eq!(spoken(&[], "done").as_deref(), Some("done"));
}

#[test]
fn of_several_results_the_agents_own_counts_and_of_those_the_last() {
    let of = |results: &[(ResultPriority, &str)]| {
        text(|answer| results.iter().for_each(|(rank, text)| answer.set_result(*rank, (*text).to_owned())))
    };
    assert_eq!(of(&[(ResultPriority::Own, "a"), (ResultPriority::Nested, "b")]).as_deref(), Some("a"));
    assert_eq!(of(&[(ResultPriority::Nested, "a"), (ResultPriority::Nested, "b")]).as_deref(), Some("b"));
    assert_eq!(
        of(&[(ResultPriority::Final, "a"), (ResultPriority::Own, "b"), (ResultPriority::Own, "")]).as_deref(),
        Some("a")
    );
}

#[test]
fn an_artifact_that_takes_the_place_of_another_replaces_it() {
    let replaced = text(|answer| {
        answer.piece("a", false, "old".to_owned(), Join::Replace);
        answer.piece("b", false, "kept".to_owned(), Join::Replace);
        answer.piece("a", false, "new".to_owned(), Join::Replace);
    });
    assert_eq!(replaced.as_deref(), Some("new\nkept"));
}

#[test]
fn an_artifact_that_is_sent_whole_again_and_again_leaves_room_for_itself_and_for_the_result() {
    let mut answer = Answer::default();
    for length in 1..2_000 {
        answer.piece("a", false, "x".repeat(10 * length), Join::Replace);
    }
    assert_eq!(answer.text().map(|text| text.len()), Some(19_990));
    answer.set_result(ResultPriority::Own, "the whole".to_owned());
    assert_eq!(answer.text().as_deref(), Some("the whole"));
}

#[test]
fn an_endless_answer_is_cut() {
    let endless =
        text(|answer| (0..20).for_each(|_| answer.piece("a", false, "ü".repeat(1 << 19), Join::Add)));
    let endless = endless.unwrap();
    assert!(endless.ends_with(TRUNCATED) && endless.len() <= LARGEST + TRUNCATED.len(), "{}", endless.len());
}

#[test]
fn parts_of_every_kind_say_something() {
    let file = Part { filename: Some("report.pdf".to_owned()), ..Content::Raw("AAAA".to_owned()).into() };
    let parts = vec![
        Part::text("a"),
        Part::data(json!({"b": 1})),
        Content::Url("https://x/y".to_owned()).into(),
        file,
        Content::Unknown.into(),
    ];
    assert_eq!(content(&Artifact::new("1", "n", parts)), r#"a{"b":1}[file: https://x/y][report.pdf]"#);
}

#[test]
fn a_structured_answer_is_distinguished_from_other_json() {
    let error = |text: &str| Some(Structured::Error(text.to_owned()));
    let message = |text: &str| Some(Structured::Message(text.to_owned()));
    for (text, expected) in [
        (r#"{"status": "error", "message": "no rights"}"#, error("no rights")),
        ("I looked.\n{\"status\":\"completed\",\"message\":\"3\"}\n", message("3")),
        (r#"{"message": "3", "status": "completed"}"#, message("3")),
        (r#"The pod says {"status": "error", "message": "x"}, so restart it."#, None),
        (r#"{"status": "error", "message": "x", "code": 7}"#, None),
        (r#"{"status": "Running"}"#, None),
        ("plain", None),
        ("}", None),
    ] {
        assert_eq!(structured(text), expected, "{text}");
    }
}
