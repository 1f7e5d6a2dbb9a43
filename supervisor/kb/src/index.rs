//! The index on disk and its schema.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{
    AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, StopWordFilter,
    TextAnalyzer,
};
use tantivy::{Index, IndexReader, ReloadPolicy, Searcher};

use crate::embeddings::Embedder;
use crate::error::{Error, Result};
use crate::source::Source;
use crate::vectors::Vectors;

/// Counted up when the schema or the meaning of a field changes.
const FORMAT: u32 = 2;
/// The analyzer of the searched fields.
const ANALYZER: &str = "words";
/// Longer words are no words.
const MAX_WORD_BYTES: usize = 64;

/// What the knowledge base contains. Every commit of the index holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    format: u32,
    pub sources: Vec<Source>,
    /// The model of the embeddings, if the chunks have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<String>,
}

impl Default for State {
    fn default() -> Self {
        Self { format: FORMAT, sources: Vec::new(), embeddings: None }
    }
}

/// The fields of a chunk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields {
    /// The document's id.
    pub(crate) document: Field,
    /// The name of the source.
    pub(crate) source: Field,
    /// The name of the source, in the first chunk of each document only.
    pub(crate) first_of: Field,
    /// The digest of the document's bytes, in its first chunk only.
    pub(crate) digest: Field,
    /// The position of the chunk in its document.
    pub(crate) number: Field,
    /// The characters of the whole document.
    pub(crate) length: Field,
    pub(crate) anchor: Field,
    pub(crate) location: Field,
    pub(crate) title: Field,
    /// The headings above the chunk, a line each.
    pub(crate) headings: Field,
    /// The words of the document's id.
    pub(crate) name: Field,
    pub(crate) text: Field,
    /// The embedding of the chunk, if it has one.
    pub(crate) vector: Field,
}

impl Fields {
    fn schema() -> (Schema, Self) {
        let mut schema = Schema::builder();
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(ANALYZER)
            .set_index_option(IndexRecordOption::WithFreqs);
        let words = TextOptions::default().set_indexing_options(indexing);
        let number = NumericOptions::default().set_stored();
        let fields = Self {
            document: schema.add_text_field("document", STRING | STORED),
            source: schema.add_text_field("source", STRING | STORED),
            first_of: schema.add_text_field("first_of", STRING),
            digest: schema.add_text_field("digest", STORED),
            number: schema.add_u64_field("number", number.clone()),
            length: schema.add_u64_field("length", number),
            anchor: schema.add_text_field("anchor", STORED),
            location: schema.add_text_field("location", STORED),
            title: schema.add_text_field("title", words.clone() | STORED),
            headings: schema.add_text_field("headings", words.clone() | STORED),
            name: schema.add_text_field("name", words.clone()),
            text: schema.add_text_field("text", words | STORED),
            vector: schema.add_bytes_field("vector", STORED),
        };
        (schema.build(), fields)
    }
}

/// The analyzer of English text: words in lower case without accents, without the most frequent ones, by their stems.
pub(crate) fn analyzer() -> TextAnalyzer {
    let words = TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(MAX_WORD_BYTES))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter);
    match StopWordFilter::new(Language::English) {
        Some(stop_words) => words.filter(stop_words).filter(Stemmer::new(Language::English)).build(),
        None => words.filter(Stemmer::new(Language::English)).build(),
    }
}

/// The file of the index that each commit replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    inode: u64,
}

/// A knowledge base that is open for reading. It sees each commit of another process.
pub struct KnowledgeBase {
    directory: PathBuf,
    index: Index,
    pub(crate) fields: Fields,
    reader: IndexReader,
    seen: Mutex<Option<Stamp>>,
    pub(crate) vectors: Vectors,
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
}

impl std::fmt::Debug for KnowledgeBase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KnowledgeBase").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl KnowledgeBase {
    /// Opens the knowledge base in a directory and checks the checksums of its files.
    ///
    /// # Errors
    /// If there is none, or if it is damaged or has another format.
    pub fn open(directory: &Path) -> Result<Self> {
        if !index_directory(directory).join("meta.json").exists() {
            return Err(Error::Missing(directory.to_path_buf()));
        }
        let damaged = |reason: String| Error::Damaged { directory: directory.to_path_buf(), reason };
        let index =
            Index::open_in_dir(index_directory(directory)).map_err(|error| damaged(error.to_string()))?;
        let found = read_state(&index).map_err(damaged)?.format;
        let (schema, fields) = Fields::schema();
        if found != FORMAT || index.schema() != schema {
            return Err(Error::Format { directory: directory.to_path_buf(), found, expected: FORMAT });
        }
        let wrong = index.validate_checksum().map_err(|error| damaged(error.to_string()))?;
        if let Some(file) = wrong.into_iter().min() {
            return Err(damaged(format!("{} has a wrong checksum", file.display())));
        }
        Self::new(directory, index, fields).map_err(|error| damaged(error.to_string()))
    }

    /// Creates an empty knowledge base.
    pub(crate) fn create(directory: &Path) -> Result<Self> {
        let path = index_directory(directory);
        // The documents may be confidential.
        let created = fs::DirBuilder::new().recursive(true).mode(0o700).create(&path);
        created.map_err(|error| Error::Read { path: path.clone(), reason: error.to_string() })?;
        let (schema, fields) = Fields::schema();
        let index = Index::create_in_dir(&path, schema)?;
        Ok(Self::new(directory, index, fields)?)
    }

    fn new(directory: &Path, index: Index, fields: Fields) -> tantivy::Result<Self> {
        index.tokenizers().register(ANALYZER, analyzer());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let seen = Mutex::new(stamp(directory));
        let (vectors, embedder) = (Vectors::new(fields.vector, fields.source), None);
        Ok(Self { directory: directory.to_path_buf(), index, fields, reader, seen, vectors, embedder })
    }

    /// The same, which also searches by embeddings if its chunks have those of this embedder's model.
    #[must_use]
    pub fn with_embedder(mut self, embedder: Option<Arc<dyn Embedder>>) -> Self {
        self.embedder = embedder;
        self
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    /// The sources, as of the newest commit.
    ///
    /// # Errors
    /// If the index is damaged.
    pub fn state(&self) -> Result<State> {
        let damaged = |reason| Error::Damaged { directory: self.directory.clone(), reason };
        read_state(&self.index).map_err(damaged)
    }

    /// Sees the newest commit.
    pub(crate) fn searcher(&self) -> Result<Searcher> {
        let newest = stamp(&self.directory);
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen != newest {
            self.reader.reload()?;
            *seen = newest;
        }
        Ok(self.reader.searcher())
    }
}

pub(crate) fn index_directory(directory: &Path) -> PathBuf {
    directory.join("index")
}

fn stamp(directory: &Path) -> Option<Stamp> {
    let metadata = fs::metadata(index_directory(directory).join("meta.json")).ok()?;
    Some(Stamp { modified: metadata.modified().ok()?, inode: metadata.ino() })
}

/// The sources in the newest commit, for a rebuild even if the rest of the index is damaged.
pub(crate) fn rescue_state(directory: &Path) -> State {
    let text = fs::read(index_directory(directory).join("meta.json")).unwrap_or_default();
    let meta: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let sources = meta["payload"].as_str().and_then(|payload| serde_json::from_str::<State>(payload).ok());
    State { sources: sources.map(|state| state.sources).unwrap_or_default(), ..State::default() }
}

fn read_state(index: &Index) -> Result<State, String> {
    let metas = index.load_metas().map_err(|error| error.to_string())?;
    match metas.payload {
        Some(payload) => serde_json::from_str(&payload).map_err(|error| error.to_string()),
        None => Ok(State::default()),
    }
}
