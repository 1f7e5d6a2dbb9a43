use super::json_string::ContentReader;
use super::marker::{MarkerSplit, after_marker};
use super::word_buffer::WordBuffer;

fn read(pieces: &[&str]) -> String {
    let (mut reader, mut answer) = (ContentReader::default(), String::new());
    for piece in pieces {
        reader.read(piece, &mut answer);
    }
    answer
}

#[test]
fn the_reader_finds_the_answer_and_nothing_else() {
    for (json, answer) in [
        (r#"{"content":"a"}"#, "a"),
        (r#" { "x" : "content" , "content" : "a" } "#, "a"),
        (r#"{"metadata":{"content":"no"},"content":"a"}"#, "a"),
        (r#"{"list":["content","message"],"message":"a"}"#, "a"),
        (r#"{"a":"{\"content\":\"no\"}","content":"a"}"#, "a"),
        (r#"{"content":"","response":"a"}"#, "a"),
        (r#"{"content":"a","response":"b"}"#, "a"),
        (r#"{"contentious":"no","c\u006fntent":"a"}"#, "a"),
        (r#"{"content":{"content":"no"},"message":null,"response":"a"}"#, "a"),
        (r#"["content","no"]"#, ""),
        (r#""content""#, ""),
        (r#"}}]]{"content":"a"}"#, "a"),
        (r#"{"is_task_complete":true,"n":1.5,"content":"a\\\"b\/c\n\t\r\b\f"}"#, "a\\\"b/c\n\t\r\u{8}\u{c}"),
    ] {
        assert_eq!(read(&[json]), answer, "{json}");
        let pieces: Vec<String> = json.chars().map(String::from).collect();
        assert_eq!(
            read(&pieces.iter().map(String::as_str).collect::<Vec<_>>()),
            answer,
            "{json}, by character"
        );
    }
}

#[test]
fn the_reader_puts_surrogates_together() {
    for (text, answer) in [
        (r"\ud83d\ude00", "😀"),
        (r"\u00e4\uD83D\uDE00!", "ä😀!"),
        (r"\ud83dx", "\u{fffd}x"),
        (r"\ud83d\n", "\u{fffd}\n"),
        (r"\ud83d\u0041", "\u{fffd}A"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}😀"),
        (r"\ude00", "\u{fffd}"),
        (r"\ud83d", "\u{fffd}"),
        (r"\u12G4", "\u{fffd}4"),
    ] {
        assert_eq!(read(&["{\"content\":\"", text, "\"}"]), answer, "{text}");
    }
}

#[test]
fn words_wait_until_they_are_whole() {
    let mut hold = WordBuffer::default();
    for (piece, shown) in [
        ("Hel", ""),
        ("lo", ""),
        (" wor", "Hello "),
        ("ld. **bo", "world. **"),
        ("ld", ""),
        ("**", "bold**"),
        ("naïve\u{2003}ü", "naïve\u{2003}"),
        (&"x".repeat(79), ""),
        ("y", &format!("ü{}y", "x".repeat(79))),
        ("end", ""),
    ] {
        assert_eq!(hold.push(piece), shown, "{piece}");
    }
    assert_eq!(hold.flush(), "end");
    assert_eq!(hold.flush(), "");
}

#[test]
fn the_marker_is_found_across_pieces() {
    for (pieces, narration, answer) in [
        (&["a [FINAL", " ANSWER]\n\nb"][..], "a ", "b"),
        (&["[FINAL_ANSWER]", "\n", "\r\n", "b\n"], "", "b\n"),
        (&["[FINAL ANSWER", "S] none"], "[FINAL ANSWERS] none", ""),
        (&["a[FINAL_ANSWER]b[FINAL ANSWER]c"], "a", "b[FINAL ANSWER]c"),
        (&["ärger über äöü"], "ärger über äöü", ""),
    ] {
        let mut split = MarkerSplit::default();
        let (mut shown, mut answered) = (String::new(), String::new());
        for piece in pieces {
            let more = split.push(piece);
            shown += &more.narration;
            answered += &more.answer;
        }
        shown += &split.flush();
        assert_eq!((shown.as_str(), answered.as_str()), (narration, answer), "{pieces:?}");
    }
    assert_eq!(after_marker("a[FINAL ANSWER]\n b"), Some(" b"));
    assert_eq!(after_marker("a"), None);
}

#[test]
fn fourteen_characters_wait() {
    let mut split = MarkerSplit::default();
    assert_eq!(split.push("äääääääääääääää").narration, "ä");
    assert_eq!(split.flush().chars().count(), 14);
}
