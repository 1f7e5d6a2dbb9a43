use std::fs;

use caipe_net::Screen;
use tempfile::TempDir;

use super::*;
use crate::{PdfReader, Request, SourceKind, Updater};

/// A knowledge base of these files; each folder is a source.
pub(crate) fn knowledge_base(files: &[(&str, &str)]) -> (TempDir, KnowledgeBase) {
    let dir = TempDir::new().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut folders = BTreeSet::new();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        folders.insert(path.parent().unwrap().to_path_buf());
    }
    let (base, pdf) = (dir.path().join("kb"), PdfReader::new("false".into(), &[]));
    let mut updater = Updater::open(&base, false, Screen::default(), pdf, runtime.handle().clone()).unwrap();
    for path in folders {
        updater.add(Request { kind: SourceKind::Path { path }, name: None }).unwrap();
    }
    updater.close().unwrap();
    let base = KnowledgeBase::open(&base).unwrap();
    (dir, base)
}

fn ids(base: &KnowledgeBase, text: &str, limit: usize, source: Option<&str>) -> Vec<String> {
    let query = Query { text: text.to_owned(), limit, source: source.map(str::to_owned) };
    base.search(&query).unwrap().into_iter().map(|hit| hit.document_id).collect()
}

#[test]
fn headings_and_stems_count_more_than_mentions() {
    let (_dir, base) = knowledge_base(&[
        ("docs/backup.md", "# Store\n\n## Backing up\n\nCopy the file of the database.\n"),
        (
            "docs/other.md",
            "# Other\n\nA backup, a backup and a database; more words about other things and the backup.\n",
        ),
        ("wiki/third.md", "# Third\n\nNothing here is relevant.\n"),
    ]);
    assert_eq!(ids(&base, "How do I back up databases?", 10, None), ["docs/backup.md", "docs/other.md"]);
    assert_eq!(ids(&base, "relevance of back ups", 10, Some("wiki")), ["wiki/third.md"]);
    assert!(ids(&base, "databases", 10, Some("absent")).is_empty());
    let none = base.search(&Query { text: "the ?! and".into(), limit: 1, source: None });
    assert!(matches!(none.unwrap_err(), Error::EmptyQuery));
}

#[test]
fn one_document_does_not_fill_the_results() {
    let many = "## Part\n\nAbout kafka.\n\n".repeat(20);
    let (_dir, base) =
        knowledge_base(&[("docs/many.md", &many), ("docs/one.md", "Something on kafka and its friends.")]);
    let found = ids(&base, "kafka", 10, None);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found.contains(&"docs/one.md".to_owned()));
    assert_eq!(ids(&base, "kafka", 1, None).len(), 1);
}

#[test]
fn a_hit_shows_the_part_with_the_words() {
    let text = format!(
        "# Long\n\n{} The broker listens on port 9092. {}",
        "filler ".repeat(100),
        "more ".repeat(100)
    );
    let (_dir, base) = knowledge_base(&[("docs/long.md", &text)]);
    let hits = base.search(&Query { text: "broker port".into(), limit: 1, source: None }).unwrap();
    let hit = &hits[0];
    assert!(hit.excerpt.contains("port 9092") && hit.excerpt.chars().count() <= MAX_EXCERPT_CHARS, "{hit:?}");
    assert_eq!(
        (hit.title.as_str(), hit.headings.as_slice(), hit.truncated),
        ("Long", ["Long".to_owned()].as_slice(), true)
    );
    assert!(hit.location.ends_with("/docs/long.md") && hit.score > 0.0);
}

#[test]
fn a_long_document_is_read_from_the_place_that_was_found() {
    let section = |name: &str| format!("## {name}\n\n{}\n\n", format!("About {name}. ").repeat(200));
    let text: String = std::iter::once("# Guide\n\n".to_owned())
        .chain(["alpha", "beta", "gamma", "delta", "omega"].map(section))
        .collect();
    let (_dir, base) = knowledge_base(&[("docs/guide.md", &text), ("docs/short.md", "Only gamma rays.")]);
    assert_eq!(base.fetch("docs/short.md").unwrap(), "Only gamma rays.");
    let found = ids(&base, "delta", 1, None);
    let id = found[0].as_str();
    assert!(id.starts_with("docs/guide.md#delta"), "{id}");
    let mut whole = String::new();
    let mut next = Some("docs/guide.md".to_owned());
    while let Some(id) = next {
        let part = base.fetch(&id).unwrap();
        assert!(part.chars().count() <= MAX_DOCUMENT_CHARS);
        let (text, note) = part
            .split_once("\n\n[The document continues")
            .map_or((part.as_str(), None), |(text, note)| (text, Some(note)));
        whole.push_str(text.trim());
        next = note.map(|note| note.split_whitespace().find(|word| word.contains('#')).unwrap().to_owned());
    }
    let letters = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(letters(&whole), letters(&text));
    assert!(base.fetch("docs/guide.md#delta").unwrap().starts_with("## delta"));
    assert!(base.fetch("docs/guide.md#removed").unwrap().starts_with("# Guide"));
    assert!(matches!(base.fetch("docs/none.md").unwrap_err(), Error::UnknownDocument(_)));
}
