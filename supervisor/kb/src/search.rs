//! Search and retrieval.

use std::collections::{BTreeSet, HashMap};

use tantivy::collector::{DocSetCollector, TopDocs};
use tantivy::query::Query as IndexQuery;
use tantivy::query::{BooleanQuery, BoostQuery, ConstScoreQuery, DisjunctionMaxQuery, Occur, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, Value as _};
use tantivy::snippet::SnippetGenerator;
use tantivy::{DocAddress, Searcher, TantivyDocument, Term};

use crate::embeddings::Purpose;
use crate::error::{Error, Result};
use crate::index::{Fields, KnowledgeBase, analyzer};
use crate::vectors::{CANDIDATES, fused};

/// The most results of a search.
pub const MAX_RESULTS: usize = 50;
/// The most characters of a result's text, and of a whole document in one answer.
pub(crate) const MAX_EXCERPT_CHARS: usize = 500;
pub(crate) const MAX_DOCUMENT_CHARS: usize = 10_000;
/// The most chunks of one document among the results.
const MAX_PER_DOCUMENT: usize = 2;
/// The most words of a query.
const MAX_WORDS: usize = 64;
/// What the fields other than the best one add to the score of a word.
const TIE_BREAKER: f32 = 0.3;
/// What a word in the headings, the title and the document's name is worth beside one in the text. Chosen with half of the
/// questions in `testdata`; the other half scores no worse.
const HEADINGS: f32 = 1.25;
const TITLE: f32 = 0.5;
const NAME: f32 = 0.5;
/// The stems of words that make a question and say nothing of its topic.
const QUESTION_WORDS: [&str; 29] = [
    "am", "ani", "can", "could", "did", "do", "doe", "get", "ha", "have", "how", "i", "mani", "me", "much",
    "my", "our", "should", "us", "use", "we", "what", "when", "where", "which", "who", "whi", "would", "you",
];

/// What to search for.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub text: String,
    /// The most results.
    pub limit: usize,
    /// Only documents of this source.
    pub source: Option<String>,
}

/// A result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The document, and the chunk in it.
    pub(crate) document: String,
    pub(crate) anchor: String,
    /// For [`KnowledgeBase::fetch`]. Names the place in the document if the document is longer than one answer.
    pub document_id: String,
    pub source: String,
    pub title: String,
    /// The headings above the text.
    pub headings: Vec<String>,
    /// The path or URL of the document.
    pub location: String,
    pub score: f32,
    /// The best part of the chunk.
    pub excerpt: String,
    /// Whether the document has more text.
    pub truncated: bool,
}

impl KnowledgeBase {
    /// The best chunks for a query, best first.
    ///
    /// # Errors
    /// If the query has no words, or the index failed.
    pub fn search(&self, query: &Query) -> Result<Vec<Hit>> {
        let searcher = self.searcher()?;
        let words = words(&query.text);
        if words.is_empty() {
            return Err(Error::EmptyQuery);
        }
        let limit = query.limit.clamp(1, MAX_RESULTS);
        let matching = self.matching(&words, query.source.as_deref());
        // Some are of the same document.
        let candidates = TopDocs::with_limit((limit * 4).max(CANDIDATES)).order_by_score();
        let mut found = searcher.search(&matching, &candidates)?;
        if let Some(vector) = self.query_vector(&query.text)? {
            let nearest = self.vectors.nearest(&searcher, &vector, query.source.as_deref())?;
            let by_words: Vec<DocAddress> = found.iter().map(|(_, address)| *address).collect();
            found = fused([&by_words, &nearest]);
        }
        let excerpts = Excerpts::new(&searcher, &matching, self.fields.text)?;
        let mut counts: HashMap<String, usize> = HashMap::new();
        let mut hits = Vec::new();
        for (score, address) in found {
            let chunk = Chunk::read(&searcher, &self.fields, address)?;
            let count = counts.entry(chunk.document.clone()).or_default();
            *count += 1;
            if *count <= MAX_PER_DOCUMENT {
                hits.push(chunk.into_hit(score, &excerpts));
            }
            if hits.len() == limit {
                break;
            }
        }
        Ok(hits)
    }

    /// The embedding of a query, if the chunks have embeddings of the same model. Without it, the search is by words only.
    fn query_vector(&self, text: &str) -> Result<Option<Vec<f32>>> {
        let Some(embedder) = &self.embedder else { return Ok(None) };
        if self.state()?.embeddings.as_deref() != Some(embedder.model()) {
            return Ok(None);
        }
        match embedder.embed(&[text.to_owned()], Purpose::Search) {
            Ok(vectors) => Ok(vectors.into_iter().next()),
            Err(reason) => {
                tracing::warn!(%reason, "this search is by words only");
                Ok(None)
            }
        }
    }

    fn matching(&self, words: &BTreeSet<String>, source: Option<&str>) -> BooleanQuery {
        let fields = &self.fields;
        let weights =
            [(fields.text, 1.0), (fields.headings, HEADINGS), (fields.title, TITLE), (fields.name, NAME)];
        let of_word = |word: &String| -> (Occur, Box<dyn IndexQuery>) {
            let in_fields = weights.map(|(field, weight)| boosted(field, word, weight));
            (Occur::Should, Box::new(DisjunctionMaxQuery::with_tie_breaker(in_fields.into(), TIE_BREAKER)))
        };
        let any = BooleanQuery::new(words.iter().map(of_word).collect());
        let Some(source) = source else { return any };
        let term = TermQuery::new(Term::from_field_text(fields.source, source), IndexRecordOption::Basic);
        let filter = ConstScoreQuery::new(Box::new(term), 0.0);
        BooleanQuery::new(vec![(Occur::Must, Box::new(any)), (Occur::Must, Box::new(filter))])
    }

    /// The text of a document, from the place that the id names. A long document is continued in further calls.
    ///
    /// # Errors
    /// If there is no such document, or the index failed.
    pub fn fetch(&self, document_id: &str) -> Result<String> {
        let searcher = self.searcher()?;
        let (mut chunks, mut anchor) = (self.chunks(&searcher, document_id)?, "");
        if let (true, Some((document, place))) = (chunks.is_empty(), document_id.rsplit_once('#')) {
            (chunks, anchor) = (self.chunks(&searcher, document)?, place);
        }
        let Some(first) = chunks.first() else { return Err(Error::UnknownDocument(document_id.to_owned())) };
        let document = first.document.clone();
        let start = chunks.iter().position(|chunk| chunk.anchor == anchor).unwrap_or(0);
        Ok(join(&document, chunks.get(start..).unwrap_or_default()))
    }

    /// The chunks of a document, in order.
    fn chunks(&self, searcher: &Searcher, document: &str) -> Result<Vec<Chunk>> {
        let term = Term::from_field_text(self.fields.document, document);
        let found = searcher.search(&TermQuery::new(term, IndexRecordOption::Basic), &DocSetCollector)?;
        let chunks = found.into_iter().map(|address| Chunk::read(searcher, &self.fields, address));
        let mut chunks = chunks.collect::<Result<Vec<_>>>()?;
        chunks.sort_unstable_by_key(|chunk| chunk.number);
        Ok(chunks)
    }
}

/// As many chunks as one answer holds, and where the document continues.
fn join(document: &str, chunks: &[Chunk]) -> String {
    let mut text = String::new();
    let mut room = MAX_DOCUMENT_CHARS;
    for (position, chunk) in chunks.iter().enumerate() {
        let next = chunks.get(position + 1);
        let note = format!(
            "\n\n[The document continues. Call fetch_document with the document_id {document}#{} for the rest.]",
            chunk.anchor
        );
        let needed = chunk.text.chars().count() + if next.is_some() { note.chars().count() } else { 0 };
        // A chunk alone always fits.
        if position > 0 && needed > room {
            text.truncate(text.trim_end().len());
            return text + &note;
        }
        room = room.saturating_sub(chunk.text.chars().count());
        text.push_str(&chunk.text);
    }
    text
}

fn boosted(field: Field, word: &str, weight: f32) -> Box<dyn IndexQuery> {
    let term = TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs);
    Box::new(BoostQuery::new(Box::new(term), weight))
}

/// The words of a query as the index has them, each once. Question words count only if there are no others.
fn words(text: &str) -> BTreeSet<String> {
    let mut analyzer = analyzer();
    let mut stream = analyzer.token_stream(text);
    let mut words = BTreeSet::new();
    while stream.advance() && words.len() < MAX_WORDS {
        words.insert(stream.token().text.clone());
    }
    let topic = words.iter().filter(|word| !QUESTION_WORDS.iter().any(|question| question == word));
    let topic: BTreeSet<String> = topic.cloned().collect();
    if topic.is_empty() { words } else { topic }
}

/// A chunk as it is stored.
struct Chunk {
    document: String,
    source: String,
    number: u64,
    length: u64,
    anchor: String,
    location: String,
    title: String,
    headings: String,
    text: String,
}

impl Chunk {
    fn read(searcher: &Searcher, fields: &Fields, address: tantivy::DocAddress) -> Result<Self> {
        let stored: TantivyDocument = searcher.doc(address)?;
        let text =
            |field| stored.get_first(field).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        let number = |field| stored.get_first(field).and_then(|value| value.as_u64()).unwrap_or_default();
        Ok(Self {
            document: text(fields.document),
            source: text(fields.source),
            number: number(fields.number),
            length: number(fields.length),
            anchor: text(fields.anchor),
            location: text(fields.location),
            title: text(fields.title),
            headings: text(fields.headings),
            text: text(fields.text),
        })
    }

    fn into_hit(self, score: f32, excerpts: &Excerpts) -> Hit {
        let long = self.length > MAX_DOCUMENT_CHARS as u64;
        let place = if long && !self.anchor.is_empty() { format!("#{}", self.anchor) } else { String::new() };
        let excerpt = excerpts.of(&self.text);
        Hit {
            document_id: format!("{}{place}", self.document),
            document: self.document,
            anchor: self.anchor,
            truncated: (excerpt.chars().count() as u64) < self.length,
            excerpt,
            source: self.source,
            title: self.title,
            headings: self.headings.lines().map(str::to_owned).collect(),
            location: self.location,
            score,
        }
    }
}

/// Cuts excerpts to the part with the most words of the query.
struct Excerpts(SnippetGenerator);

impl Excerpts {
    fn new(searcher: &Searcher, query: &dyn IndexQuery, field: Field) -> Result<Self> {
        let mut generator = SnippetGenerator::create(searcher, query, field)?;
        generator.set_max_num_chars(MAX_EXCERPT_CHARS);
        Ok(Self(generator))
    }

    fn of(&self, text: &str) -> String {
        let text = text.trim();
        if text.chars().count() <= MAX_EXCERPT_CHARS {
            return text.to_owned();
        }
        let snippet = self.0.snippet(text);
        let best = if snippet.is_empty() { text } else { snippet.fragment() };
        best.chars().take(MAX_EXCERPT_CHARS).collect()
    }
}

#[cfg(test)]
#[path = "search_tests.rs"]
pub(crate) mod tests;
