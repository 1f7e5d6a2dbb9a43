use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tempfile::TempDir;

use super::*;
use crate::search::Query;

struct Setup {
    dir: TempDir,
    runtime: tokio::runtime::Runtime,
}

impl Setup {
    fn new(files: &[(&str, &str)]) -> Self {
        let setup = Self { dir: TempDir::new().unwrap(), runtime: tokio::runtime::Runtime::new().unwrap() };
        fs::create_dir(setup.docs()).unwrap();
        for (name, text) in files {
            setup.write(name, text);
        }
        setup
    }

    fn docs(&self) -> PathBuf {
        self.dir.path().join("docs")
    }

    fn base(&self) -> PathBuf {
        self.dir.path().join("kb")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.docs().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn open(&self, rebuild: bool) -> Result<Updater> {
        let pdf = PdfReader::new("/bin/false".into(), &[]);
        Updater::open(&self.base(), rebuild, Screen::default(), pdf, self.runtime.handle().clone())
    }

    fn add(&self) -> Report {
        let mut updater = self.open(false).unwrap();
        let report =
            updater.add(Request { kind: SourceKind::Path { path: self.docs() }, name: None }).unwrap();
        updater.close().unwrap();
        report
    }

    fn found(&self, text: &str) -> Vec<String> {
        found(&KnowledgeBase::open(&self.base()).unwrap(), text)
    }
}

fn found(base: &KnowledgeBase, text: &str) -> Vec<String> {
    let hits = base.search(&Query { text: text.to_owned(), limit: 10, source: None }).unwrap();
    hits.into_iter().map(|hit| hit.document_id).collect()
}

fn counts(report: &Report) -> [usize; 4] {
    [report.added, report.changed, report.removed, report.unchanged]
}

#[test]
fn only_what_changed_is_indexed_again() {
    let setup = Setup::new(&[("a.md", "# Alpha"), ("sub/b.txt", "beta"), ("c.png", "gamma"), ("d.md", " ")]);
    let report = setup.add();
    assert_eq!(counts(&report), [2, 0, 0, 0]);
    assert_eq!(report.skipped, ["docs/d.md: it has no text"]);
    assert_eq!(counts(&setup.add()), [0, 0, 0, 2]);
    setup.write("a.md", "# Delta");
    fs::remove_file(setup.docs().join("sub/b.txt")).unwrap();
    setup.write("e.html", "<p>epsilon");
    assert_eq!(counts(&setup.add()), [1, 1, 1, 0]);
    assert_eq!((setup.found("alpha").len(), setup.found("beta").len()), (0, 0));
    assert_eq!(
        (setup.found("delta"), setup.found("epsilon")),
        (vec!["docs/a.md".to_owned()], vec!["docs/e.html".to_owned()])
    );
    let state = KnowledgeBase::open(&setup.base()).unwrap().state().unwrap();
    assert_eq!(
        state.sources.iter().map(|source| (source.name.as_str(), source.documents)).collect::<Vec<_>>(),
        [("docs", 2)]
    );
}

#[test]
fn links_that_leave_the_folder_are_not_followed() {
    let setup = Setup::new(&[
        ("..data/in.md", "inside"),
        (".hidden/x.md", "hidden"),
        ("node_modules/y.md", "module"),
    ]);
    fs::write(setup.dir.path().join("secret.md"), "secret").unwrap();
    symlink("..data/in.md", setup.docs().join("in.md")).unwrap();
    symlink("../secret.md", setup.docs().join("out.md")).unwrap();
    symlink("..", setup.docs().join("parent")).unwrap();
    symlink("/dev/zero", setup.docs().join("zero.txt")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, setup.docs().join("pipe.txt"), rustix::fs::Mode::RWXU).unwrap();
    let report = setup.add();
    assert_eq!((counts(&report), report.skipped_count), ([1, 0, 0, 0], 3));
    assert_eq!(setup.found("inside secret hidden module"), ["docs/in.md"]);
}

#[test]
fn large_files_and_deep_folders_are_skipped() {
    let setup = Setup::new(&[("ok.md", "fine")]);
    setup.write("large.txt", &"word ".repeat(4 << 20));
    setup.write(&format!("{}x.md", "d/".repeat(40)), "deep");
    let report = setup.add();
    assert_eq!((counts(&report), report.skipped_count), ([1, 0, 0, 0], 2));
    let reasons = report.skipped.join("\n");
    assert!(reasons.contains("larger than 16 MiB") && reasons.contains("32 folders deep"), "{reasons}");
}

#[test]
fn an_update_that_fails_or_is_killed_changes_nothing() {
    let setup = Setup::new(&[("a.md", "alpha")]);
    setup.add();
    setup.write("a.md", "beta");
    // As a kill does, this ends the writer before its commit.
    let updater = setup.open(false).unwrap();
    let mut pending = Pending::new(&updater, "docs").unwrap();
    pending.folder(&setup.docs()).unwrap();
    assert_eq!(pending.report.changed, 1);
    drop(pending);
    drop(updater);
    assert_eq!((setup.found("alpha").len(), setup.found("beta").len()), (1, 0));
    fs::rename(setup.docs(), setup.dir.path().join("moved")).unwrap();
    let mut updater = setup.open(false).unwrap();
    let request = Request { kind: SourceKind::Path { path: setup.docs() }, name: None };
    assert!(updater.add(request).unwrap_err().to_string().contains("failed to read"));
    drop(updater);
    assert_eq!(setup.found("alpha").len(), 1);
}

#[test]
fn there_is_one_writer_and_readers_see_its_commits() {
    let setup = Setup::new(&[("a.md", "alpha")]);
    setup.add();
    let reader = KnowledgeBase::open(&setup.base()).unwrap();
    let mut updater = setup.open(false).unwrap();
    assert!(matches!(setup.open(false).unwrap_err(), Error::Locked(_)));
    setup.write("b.md", "beta");
    assert_eq!(found(&reader, "beta").len(), 0);
    updater.add(Request { kind: SourceKind::Path { path: setup.docs() }, name: None }).unwrap();
    assert_eq!(found(&reader, "beta"), ["docs/b.md"]);
    assert_eq!(updater.remove("docs").unwrap(), 2);
    assert_eq!(found(&reader, "beta").len(), 0);
    assert!(updater.remove("docs").unwrap_err().to_string().contains("the sources are none"));
    let other = setup.dir.path().join("other/docs");
    fs::create_dir_all(&other).unwrap();
    for path in [setup.docs(), other] {
        updater.add(Request { kind: SourceKind::Path { path }, name: None }).unwrap();
    }
    let names: Vec<&str> = updater.sources().iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["docs", "docs-2"]);
}

#[test]
fn a_damaged_index_is_reported_and_rebuilt() {
    let setup = Setup::new(&[("a.md", "alpha")]);
    assert!(matches!(KnowledgeBase::open(&setup.base()).unwrap_err(), Error::Missing(_)));
    setup.add();
    let files = fs::read_dir(setup.base().join("index")).unwrap().map(|entry| entry.unwrap().path());
    let store = files.into_iter().find(|path| path.extension().is_some_and(|end| end == "store")).unwrap();
    let whole = fs::read(&store).unwrap();
    for damage in [[b"X", &whole[1..]].concat(), whole[..10].to_vec(), Vec::new()] {
        fs::remove_file(&store).unwrap();
        fs::write(&store, damage).unwrap();
        let error = setup.open(false).unwrap_err().to_string();
        assert!(error.contains("is damaged") && error.contains("kb add --rebuild"), "{error}");
    }
    let mut updater = setup.open(true).unwrap();
    assert_eq!(updater.sources().len(), 1, "the sources are known");
    let kind = updater.sources()[0].kind.clone();
    updater.add(Request { kind, name: None }).unwrap();
    drop(updater);
    assert_eq!(setup.found("alpha"), ["docs/a.md"]);
    let meta = setup.base().join("index/meta.json");
    fs::write(&meta, fs::read_to_string(&meta).unwrap().replace("\\\"format\\\":2", "\\\"format\\\":9"))
        .unwrap();
    let error = KnowledgeBase::open(&setup.base()).unwrap_err().to_string();
    assert!(error.contains("has the format 9"), "{error}");
    fs::write(&meta, "{").unwrap();
    assert!(matches!(KnowledgeBase::open(&setup.base()).unwrap_err(), Error::Damaged { .. }));
    assert_eq!(setup.open(true).unwrap().sources().len(), 0);
}

/// Embeds by meaning: texts about cars are near each other. Counts the texts, and fails when asked to.
#[derive(Debug, Default)]
struct Meaning {
    texts: AtomicUsize,
    fails: AtomicBool,
}

impl Embedder for Meaning {
    fn model(&self) -> &'static str {
        "meaning"
    }

    fn embed(&self, texts: &[String], _: Purpose) -> std::result::Result<Vec<Vec<f32>>, String> {
        if self.fails.load(Ordering::SeqCst) {
            return Err("the provider is down".to_owned());
        }
        self.texts.fetch_add(texts.len(), Ordering::SeqCst);
        let is_car = |text: &String| ["car", "automobile"].iter().any(|word| text.contains(word));
        Ok(texts.iter().map(|text| if is_car(text) { vec![1.0, 0.1] } else { vec![0.1, 1.0] }).collect())
    }
}

#[test]
fn embeddings_find_other_words_and_are_made_once() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("docs");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.md"), "# Garage\n\nThe automobile is red.").unwrap();
    fs::write(folder.join("b.md"), "# Kitchen\n\nThe stove is hot.").unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let kb = dir.path().join("kb");
    let meaning = Arc::new(Meaning::default());
    let open = |rebuild, embeds: bool| {
        let pdf = PdfReader::new("false".into(), &[]);
        let updater = Updater::open(&kb, rebuild, Screen::default(), pdf, runtime.handle().clone()).unwrap();
        let embedding = Embedding { embedder: meaning.clone(), max_tokens: 100 };
        updater.with_embedding(embeds.then_some(embedding))
    };
    let add = |updater: &mut Updater| {
        updater.add(Request { kind: SourceKind::Path { path: folder.clone() }, name: None })
    };
    let titles = |embedder: Option<Arc<dyn Embedder>>| {
        let base = KnowledgeBase::open(&kb).unwrap().with_embedder(embedder);
        let query = Query { text: "car".to_owned(), limit: 1, source: Some("docs".to_owned()) };
        base.search(&query).unwrap().into_iter().map(|hit| hit.title).collect::<Vec<_>>()
    };

    let mut updater = open(false, false).unwrap();
    add(&mut updater).unwrap();
    drop(updater);
    assert!(titles(Some(meaning.clone())).is_empty(), "without embeddings, the search is by words");
    let refused = open(false, true).unwrap_err().to_string();
    assert!(refused.contains("has embeddings of no model, not of meaning"), "{refused}");

    let mut updater = open(true, true).unwrap();
    let report = add(&mut updater).unwrap();
    assert_eq!((report.embedded, report.embedded_tokens > 0), (2, true));
    assert_eq!(titles(Some(meaning.clone())), ["Garage"]);
    assert!(titles(None).is_empty());
    assert_eq!(add(&mut updater).unwrap().embedded, 0, "nothing has changed");
    fs::write(folder.join("b.md"), "# Kitchen\n\nThe stove is cold.").unwrap();
    assert_eq!(add(&mut updater).unwrap().embedded, 1);
    assert_eq!(meaning.texts.load(Ordering::SeqCst), 4, "three chunks and one query");

    meaning.fails.store(true, Ordering::SeqCst);
    assert!(titles(Some(meaning.clone())).is_empty(), "a search goes on by words");
    fs::write(folder.join("c.md"), "car").unwrap();
    let failed = add(&mut updater).unwrap_err().to_string();
    assert_eq!(failed, "failed to embed documents: the provider is down");
    meaning.fails.store(false, Ordering::SeqCst);
    fs::write(folder.join("c.md"), "car ".repeat(200)).unwrap();
    let bounded = add(&mut updater).unwrap_err().to_string();
    assert!(bounded.contains("at most 100 are embedded at once"), "{bounded}");
    assert_eq!(titles(Some(meaning.clone())), ["Garage"], "the knowledge base is as it was");
}
