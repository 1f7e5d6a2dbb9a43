use proptest::prelude::*;

use super::*;
use crate::extract::{Form, PdfReader, extract};

fn markdown(text: &str) -> Extracted {
    extract(Form::Markdown, text.as_bytes(), &PdfReader::new("false".into(), &[])).unwrap()
}

fn outline(text: &str) -> Vec<(String, String)> {
    split(&markdown(text)).into_iter().map(|chunk| (chunk.anchor, chunk.headings.join(" > "))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(anchor, path)| ((*anchor).to_owned(), (*path).to_owned())).collect()
}

#[test]
fn a_chunk_is_a_section_with_the_headings_above_it() {
    let text = "Preface.\n\n# Guide\n\nIntro.\n\n## Install it\n\nSteps.\n\n### On Linux\n\nMore.\n\n## Use\n\nText.\n";
    let expected = [
        ("", ""),
        ("guide", "Guide"),
        ("install-it", "Guide > Install it"),
        ("on-linux", "Guide > Install it > On Linux"),
        ("use", "Guide > Use"),
    ];
    assert_eq!(outline(text), pairs(&expected));
}

#[test]
fn a_heading_without_text_belongs_to_the_next_section() {
    let text = "# Guide\n\n## Install\n\nSteps.\n\nNotes\n-----\n\n## Last\n";
    let expected = [("install", "Guide > Install"), ("last", "Guide > Last")];
    assert_eq!(outline(text), pairs(&expected));
    assert!(split(&markdown(text))[0].text.starts_with("# Guide"));
}

#[test]
fn code_is_not_mistaken_for_headings() {
    assert_eq!(
        outline("# A\n\n```sh\n# a comment\nls\n```\n\n## B\n\nx\n"),
        pairs(&[("a", "A"), ("b", "A > B")])
    );
}

#[test]
fn equal_headings_have_anchors_of_their_own() {
    let expected = [("a", "A"), ("a-1", "A"), ("a-2", "A")];
    assert_eq!(outline("# A\n\n1\n\n# A\n\n2\n\n# A\n\n3\n"), pairs(&expected));
}

#[test]
fn a_long_section_is_split_at_paragraphs() {
    let paragraph = "word ".repeat(150);
    let text = format!("# Long\n\n{}", format!("{paragraph}\n\n").repeat(6));
    let chunks = split(&markdown(&text));
    let anchors: Vec<&str> = chunks.iter().map(|chunk| chunk.anchor.as_str()).collect();
    assert_eq!(anchors, ["long", "long~2", "long~3"]);
    assert!(chunks.iter().all(|chunk| chunk.text.ends_with("\n\n") && chunk.text.len() <= MAX_BYTES));
}

proptest! {
    /// Whatever the text, the chunks contain all of it, in order, and none is too long.
    #[test]
    fn no_text_is_lost(lines in prop::collection::vec(
        prop_oneof!["#{1,7} ?[a-c]{0,3}", "[a-zé日\u{2028} ]{0,60}", "```", "---", "===", "- x", "a.{0,3000}", Just(String::new())],
        0..40,
    )) {
        let document = markdown(&lines.join("\n"));
        let chunks = split(&document);
        let joined: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
        prop_assert_eq!(joined, document.text);
        prop_assert!(chunks.iter().all(|chunk| !chunk.text.is_empty() && chunk.text.len() <= MAX_BYTES));
        let anchors: std::collections::BTreeSet<&str> = chunks.iter().map(|chunk| chunk.anchor.as_str()).collect();
        prop_assert_eq!(anchors.len(), chunks.len());
    }
}
