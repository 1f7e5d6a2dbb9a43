//! The quality of the search: nDCG@10 on labelled questions about this project's documentation, beside plain BM25.
//!
//! `CAIPE_WRITE_QUALITY=1 cargo test -p caipe-kb quality` writes the table in docs/knowledge-base.md.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caipe_net::Screen;
use sha2::{Digest as _, Sha256};
use tantivy::collector::TopDocs;
use tantivy::query::{BooleanQuery, Occur, TermQuery};
use tantivy::schema::{IndexRecordOption, STORED, STRING, Schema, TEXT, Value as _};
use tantivy::{Index, TantivyDocument, Term, doc};
use tempfile::TempDir;

use crate::extract::{Form, extract};
use crate::update::embedded_text;
use crate::{
    Embedder, Embedding, KnowledgeBase, PdfReader, Purpose, Query, Request, SourceKind, Updater, chunk,
};

const QUESTIONS: &str = include_str!("../testdata/questions.tsv");
/// The pages of the labels. The page with the table is none of them, because it would contain the figures.
const LEFT_OUT: [&str; 3] = ["knowledge-base.md", "reference.md", "SUMMARY.md"];
const EMBEDDINGS: &str = include_str!("../testdata/embeddings.tsv");
const DEPTH: usize = 10;
/// The measured value, less what an ordinary change of the pages costs.
const FLOOR: f64 = 0.62;

struct Question {
    text: &'static str,
    /// The grade of each section, by `docs/PAGE#ANCHOR`.
    grades: HashMap<String, u32>,
}

fn questions() -> Vec<Question> {
    let lines = QUESTIONS.lines().filter(|line| !line.starts_with('#'));
    lines.map(question).collect()
}

fn question(line: &'static str) -> Question {
    let (text, labels) = line.split_once('\t').unwrap_or_else(|| panic!("no labels: {line}"));
    let grade = |label: &str| {
        let (section, grade) = label.rsplit_once('=').unwrap_or_else(|| panic!("no grade: {line}"));
        (format!("docs/{section}"), grade.parse().unwrap())
    };
    Question { text, grades: labels.split(' ').map(grade).collect() }
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").canonicalize().unwrap()
}

/// The pages of the documentation, without those that are left out.
fn pages() -> Vec<(String, String)> {
    let entries = std::fs::read_dir(docs()).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.path()));
    let pages = named.filter(|(name, _)| {
        Form::of_name(name) == Some(Form::Markdown) && !LEFT_OUT.contains(&name.as_str())
    });
    pages.map(|(name, path)| (name, std::fs::read_to_string(path).unwrap())).collect()
}

fn knowledge_base(
    pages: &[(String, String)],
    embedder: Option<Arc<dyn Embedder>>,
) -> (TempDir, KnowledgeBase) {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("docs");
    std::fs::create_dir(&folder).unwrap();
    for (name, text) in pages {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (base, pdf) = (dir.path().join("kb"), PdfReader::new("false".into(), &[]));
    let updater = Updater::open(&base, false, Screen::default(), pdf, runtime.handle().clone()).unwrap();
    let embedding = embedder.clone().map(|embedder| Embedding { embedder, max_tokens: u64::MAX });
    let mut updater = updater.with_embedding(embedding).unwrap();
    updater.add(Request { kind: SourceKind::Path { path: folder }, name: None }).unwrap();
    updater.close().unwrap();
    let base = KnowledgeBase::open(&base).unwrap().with_embedder(embedder);
    (dir, base)
}

/// Embeddings that were recorded once, by `testdata/record_embeddings.py`.
#[derive(Debug)]
struct Recorded {
    vectors: HashMap<String, Vec<f32>>,
}

impl Recorded {
    fn read() -> Self {
        let vector = |digits: &str| {
            let byte =
                |at: usize| f32::from(u8::from_str_radix(&digits[at..at + 2], 16).unwrap().cast_signed());
            (0..digits.len()).step_by(2).map(byte).collect()
        };
        let lines = EMBEDDINGS.lines().filter(|line| !line.starts_with('#'));
        let pairs = lines.map(|line| line.split_once('\t').unwrap());
        Self { vectors: pairs.map(|(key, digits)| (key.to_owned(), vector(digits))).collect() }
    }
}

impl Embedder for Recorded {
    fn model(&self) -> &'static str {
        "all-MiniLM-L6-v2"
    }

    fn embed(&self, texts: &[String], _: Purpose) -> Result<Vec<Vec<f32>>, String> {
        // A chunk that was changed since has no vector.
        Ok(texts
            .iter()
            .map(|text| self.vectors.get(&key(text)).cloned().unwrap_or_else(|| vec![0.0]))
            .collect())
    }
}

/// What identifies an embedded text: its digest.
fn key(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    format!("{:012x}", digest.iter().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte)))
}

/// All texts that are embedded: the chunks and the questions.
fn embedded_texts(pages: &[(String, String)]) -> Vec<String> {
    let pdf = PdfReader::new("false".into(), &[]);
    let of_page = |(name, text): &(String, String)| {
        let extracted = extract(Form::Markdown, text.as_bytes(), &pdf).unwrap();
        let title = extracted.title.clone().unwrap_or_else(|| name.clone());
        chunk::split(&extracted).iter().map(|chunk| embedded_text(&title, chunk)).collect::<Vec<_>>()
    };
    let questions = questions().into_iter().map(|question| question.text.to_owned());
    pages.iter().flat_map(of_page).chain(questions).collect()
}

/// The section and the text of each chunk.
fn chunks(pages: &[(String, String)]) -> Vec<(String, String)> {
    let pdf = PdfReader::new("false".into(), &[]);
    let split = |(name, text): &(String, String)| {
        let chunks = chunk::split(&extract(Form::Markdown, text.as_bytes(), &pdf).unwrap());
        let document = format!("docs/{name}");
        chunks.into_iter().map(move |chunk| (section(&document, &chunk.anchor), chunk.text))
    };
    pages.iter().flat_map(split).collect()
}

/// The section of a chunk: parts of a long section count as one.
fn section(document: &str, anchor: &str) -> String {
    format!("{document}#{}", anchor.split('~').next().unwrap_or_default())
}

/// Normalized discounted cumulative gain of the first results; a section counts where it is first found.
fn ndcg(ranking: &[String], grades: &HashMap<String, u32>) -> f64 {
    let gain = |grade: u32| f64::from((1_u32 << grade) - 1);
    let discount = |rank: usize| 1.0 / f64::from(u32::try_from(rank).unwrap() + 2).log2();
    let mut seen = Vec::new();
    let mut found = 0.0;
    for (rank, section) in ranking.iter().take(DEPTH).enumerate() {
        if let Some(grade) = grades.get(section).filter(|_| !seen.contains(&section)) {
            found += gain(*grade) * discount(rank);
            seen.push(section);
        }
    }
    let mut best: Vec<u32> = grades.values().copied().collect();
    best.sort_unstable_by(|one, other| other.cmp(one));
    let ideal: f64 =
        best.into_iter().take(DEPTH).enumerate().map(|(rank, grade)| gain(grade) * discount(rank)).sum();
    found / ideal
}

#[derive(Debug, Default, Clone, Copy)]
struct Figures {
    ndcg: f64,
    /// The share of questions whose first three results, which a model reads, have a section of grade 3.
    answered: f64,
}

fn measure(questions: &[Question], rank: impl Fn(&str) -> Vec<String>) -> Figures {
    let mut figures = Figures::default();
    let count = f64::from(u32::try_from(questions.len()).unwrap());
    for question in questions {
        let ranking = rank(question.text);
        let score = ndcg(&ranking, &question.grades);
        if std::env::var_os("CAIPE_SHOW_QUALITY").is_some() && score < 0.7 {
            println!("{score:.2} {}\n     {ranking:#?}", question.text);
        }
        figures.ndcg += score / count;
        let answers = ranking.iter().take(3).any(|section| question.grades.get(section) == Some(&3));
        figures.answered += if answers { 1.0 / count } else { 0.0 };
    }
    figures
}

/// Plain BM25: the same chunks in one field, split into words in lower case, nothing else.
struct Plain {
    index: Index,
}

impl Plain {
    fn new(chunks: &[(String, String)]) -> Self {
        let mut schema = Schema::builder();
        let (section, text) =
            (schema.add_text_field("section", STRING | STORED), schema.add_text_field("text", TEXT));
        let index = Index::create_in_ram(schema.build());
        let mut writer = index.writer_with_num_threads(1, 16 << 20).unwrap();
        for (name, words) in chunks {
            writer.add_document(doc!(section => name.as_str(), text => words.as_str())).unwrap();
        }
        writer.commit().unwrap();
        Self { index }
    }

    fn rank(&self, query: &str) -> Vec<String> {
        let (section, text) = (
            self.index.schema().get_field("section").unwrap(),
            self.index.schema().get_field("text").unwrap(),
        );
        let mut tokenizer = self.index.tokenizers().get("default").unwrap();
        let mut words = tokenizer.token_stream(query);
        let mut clauses: Vec<(Occur, Box<dyn tantivy::query::Query>)> = Vec::new();
        while words.advance() {
            let term = Term::from_field_text(text, &words.token().text);
            clauses.push((Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
        }
        let searcher = self.index.reader().unwrap().searcher();
        let found = searcher
            .search(&BooleanQuery::new(clauses), &TopDocs::with_limit(DEPTH).order_by_score())
            .unwrap();
        let name = |stored: &TantivyDocument| stored.get_first(section).unwrap().as_str().unwrap().to_owned();
        found.into_iter().map(|(_, address)| name(&searcher.doc(address).unwrap())).collect()
    }
}

#[test]
fn the_search_finds_the_sections_that_answer() {
    let pages = pages();
    let (_dir, base) = knowledge_base(&pages, None);
    let (questions, chunks) = (questions(), chunks(&pages));
    assert_eq!(questions.len(), 100);
    let labels = questions.iter().flat_map(|question| question.grades.keys());
    let missing: Vec<&String> =
        labels.filter(|label| chunks.iter().all(|(name, _)| name != *label)).collect();
    assert!(missing.is_empty(), "there is no section {missing:?}; correct testdata/questions.tsv");
    let plain = Plain::new(&chunks);
    let searched = |base: &KnowledgeBase| {
        measure(&questions, |text| {
            let hits = base.search(&Query { text: text.to_owned(), limit: DEPTH, source: None }).unwrap();
            hits.into_iter().map(|hit| section(&hit.document, &hit.anchor)).collect()
        })
    };
    let ours = searched(&base);
    let (_hybrid_dir, hybrid) = knowledge_base(&pages, Some(Arc::new(Recorded::read())));
    let hybrid = searched(&hybrid);
    let plain = measure(&questions, |text| plain.rank(text));
    let table = table([plain, ours, hybrid], chunks.len());
    println!("{table}");
    assert!(ours.ndcg > FLOOR && ours.ndcg > plain.ndcg + 0.05, "{ours:?} {plain:?}");
    if std::env::var_os("CAIPE_WRITE_QUALITY").is_some() {
        write(&table);
    }
}

/// Writes the texts for `testdata/record_embeddings.py` to the file that `CAIPE_WRITE_TEXTS` names, as JSON lines. Checks that the
/// record has most of them.
#[test]
fn the_recorded_embeddings_are_of_these_pages() {
    let (texts, recorded) = (embedded_texts(&pages()), Recorded::read());
    if let Some(path) = std::env::var_os("CAIPE_WRITE_TEXTS") {
        let line = |text: &String| serde_json::json!([key(text), text]).to_string() + "\n";
        std::fs::write(path, texts.iter().map(line).collect::<String>()).unwrap();
    }
    let known = texts.iter().filter(|text| recorded.vectors.contains_key(&key(text))).count();
    assert!(
        known * 2 > texts.len(),
        "{known} of {}: record again with testdata/record_embeddings.py",
        texts.len()
    );
}

fn table([plain, ours, hybrid]: [Figures; 3], chunks: usize) -> String {
    let row = |name: &str, figures: Figures| {
        format!("| {name} | {:.2} | {:.0} % |\n", figures.ndcg, figures.answered * 100.0)
    };
    format!(
        "| 100 questions, {chunks} chunks | nDCG@10 | an answer among the first three |\n| --- | --- | --- |\n{}{}{}",
        row("plain BM25: one field, no stemming", plain),
        row("`kb search`", ours),
        row("`kb search` with embeddings of all-MiniLM-L6-v2", hybrid)
    )
}

/// Replaces the table on the page.
fn write(table: &str) {
    const MARKS: [&str; 2] =
        ["<!-- written by the test quality -->\n", "<!-- end of what the test writes -->"];
    let path = docs().join("knowledge-base.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(MARKS[0]).expect("the page has no mark");
    let (_, tail) = rest.split_once(MARKS[1]).expect("the page has no second mark");
    std::fs::write(path, format!("{head}{}\n{table}\n{}{tail}", MARKS[0], MARKS[1])).unwrap();
}
