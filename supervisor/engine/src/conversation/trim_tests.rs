use caipe_model::{ToolCall, ToolResult};

use super::*;

/// A conversation in one letter per message of 100 tokens and more: `u`ser, `a`ssistant without a call, `c`all, `r`esult.
fn conversation(shape: &str) -> Messages {
    shape.chars().enumerate().map(|(at, kind)| Arc::new(message(at, kind))).collect()
}

fn message(at: usize, kind: char) -> Message {
    let (id, text) = (at.to_string(), "x".repeat(400));
    let role = if kind == 'u' { Role::User } else { Role::Assistant };
    let part = match kind {
        'c' => Part::ToolCall(ToolCall { id, name: "t".to_owned(), arguments: text }),
        'r' => return Message::results([ToolResult { call_id: id, content: text, is_error: false }]),
        _ => Part::Text { text },
    };
    Message { role, parts: vec![part], extra: None }
}

fn shape(messages: &[Arc<Message>]) -> String {
    let letter = |message: &Arc<Message>| match message.role {
        Role::User => 'u',
        Role::Tool => 'r',
        Role::Assistant if message.tool_calls().next().is_some() => 'c',
        Role::Assistant => 'a',
    };
    messages.iter().map(letter).collect()
}

#[test]
fn what_is_dropped() {
    for (before, most, target, keep, after) in [
        ("uaua", 1000, 0, 0, "uaua"),
        ("uauau", 500, 320, 1, "uau"),
        ("uauau", 500, 0, 1, "u"),
        ("uauau", 500, 0, 3, "uau"),
        ("uauau", 500, 0, 4, "uauau"),
        ("ucrcrcr", 500, 520, 2, "ucrcr"),
        ("ucrcrcr", 500, 0, 2, "ucr"),
        ("ucrcrcr", 500, 0, 1, "ucr"),
        ("uaucrcr", 500, 520, 2, "ucrcr"),
        ("uaucrcr", 500, 0, 2, "ucr"),
        ("crcrcr", 500, 0, 2, "cr"),
    ] {
        let mut messages = conversation(before);
        let dropped = trim(&mut messages, most, target, keep);
        assert_eq!(shape(&messages), after, "{before} {most} {target} {keep}");
        assert_eq!(shape(&dropped).len(), before.len() - after.len());
    }
}

#[test]
fn a_text_is_cut_between_characters() {
    assert_eq!(truncated("äöü", 3, TRUNCATED), "äöü");
    assert_eq!(truncated("äöü", 2, TRUNCATED), "äö\n\n[Output truncated]");
    assert_eq!(truncated("", 0, TRUNCATED), "");
}

#[test]
fn shrinking_cuts_long_results_once() {
    let mut messages = conversation("uc");
    let content = "ü".repeat(9000);
    messages.push(Arc::new(Message::results([ToolResult {
        call_id: "1".to_owned(),
        content,
        is_error: false,
    }])));
    assert!(shrink(&mut messages, 100_000).1);
    assert!(!shrink(&mut messages, 100_000).1, "there is nothing left to cut");
}
