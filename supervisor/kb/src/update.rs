//! Changes of the knowledge base.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use caipe_net::Screen;
use sha2::{Digest as _, Sha256};
use tantivy::collector::DocSetCollector;
use tantivy::directory::error::LockError;
use tantivy::query::TermQuery;
use tantivy::schema::{IndexRecordOption, Value as _};
use tantivy::{IndexWriter, TantivyDocument, TantivyError, Term};
use tokio::runtime::Handle;

use crate::chunk::{self, Chunk};
use crate::embeddings::{BATCH, Embedder, Purpose, quantized};
use crate::error::{Error, Result};
use crate::extract::{PdfReader, extract};
use crate::index::{KnowledgeBase, State, index_directory, rescue_state};
use crate::source::{self, RawDocument, Source, SourceKind};

/// The memory in which changes are collected before they are written.
const WRITER_BYTES: usize = 32 << 20;
/// The estimated bytes of a token.
const TOKEN_BYTES: u64 = 4;
/// The most skipped files that a report names.
const MAX_NAMED: usize = 20;
/// Changes when text is extracted or split in another way, so that unchanged files are indexed again.
const EXTRACTION: &[u8] = b"1\0";

/// What to add.
#[derive(Debug, Clone)]
pub struct Request {
    pub kind: SourceKind,
    /// The name of the source, if not the one that its path or URL suggests.
    pub name: Option<String>,
}

/// What an update of a source did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub source: String,
    pub added: usize,
    pub changed: usize,
    pub removed: usize,
    pub unchanged: usize,
    /// Files that were not read, with the reasons; the first few.
    pub skipped: Vec<String>,
    pub skipped_count: usize,
    /// The chunks that were embedded, and about how many tokens they have.
    pub embedded: usize,
    pub embedded_tokens: u64,
}

impl Report {
    fn skip(&mut self, name: &str, reason: &str) {
        self.skipped_count += 1;
        if self.skipped.len() < MAX_NAMED {
            self.skipped.push(format!("{name}: {reason}"));
        }
    }

    /// Documents of the source.
    pub const fn documents(&self) -> usize {
        self.added + self.changed + self.unchanged
    }
}

/// The only writer of a knowledge base. Blocks its thread; call it outside the runtime's workers.
pub struct Updater {
    base: KnowledgeBase,
    state: State,
    writer: IndexWriter,
    screen: Screen,
    pdf: PdfReader,
    runtime: Handle,
    embedding: Option<Embedding>,
}

/// How new documents are embedded.
#[derive(Debug, Clone)]
pub struct Embedding {
    pub embedder: Arc<dyn Embedder>,
    /// The most tokens of an update, estimated.
    pub max_tokens: u64,
}

impl std::fmt::Debug for Updater {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Updater").field("base", &self.base).finish_non_exhaustive()
    }
}

impl Updater {
    /// Opens the knowledge base for changes, or creates it. `rebuild` deletes its documents and keeps its sources.
    ///
    /// # Errors
    /// If the index is damaged, or if another process is changing it.
    pub fn open(
        directory: &Path,
        rebuild: bool,
        screen: Screen,
        pdf: PdfReader,
        runtime: Handle,
    ) -> Result<Self> {
        let rescued = rebuild.then(|| rescue_state(directory));
        if rebuild {
            discard(directory)?;
        }
        let base = match KnowledgeBase::open(directory) {
            Err(Error::Missing(_)) => KnowledgeBase::create(directory)?,
            opened => opened?,
        };
        let writer = base.index().writer_with_num_threads(1, WRITER_BYTES).map_err(|error| match error {
            TantivyError::LockFailure(LockError::LockBusy, _) => Error::Locked(directory.to_path_buf()),
            other => other.into(),
        })?;
        let state = rescued.map_or_else(|| base.state(), Ok)?;
        let mut updater = Self { base, state, writer, screen, pdf, runtime, embedding: None };
        if rebuild {
            // A rebuild that is killed keeps the sources.
            updater.commit()?;
        }
        Ok(updater)
    }

    /// The same, which embeds new documents.
    ///
    /// # Errors
    /// If the index has documents without embeddings, or with those of another model.
    pub fn with_embedding(mut self, embedding: Option<Embedding>) -> Result<Self> {
        if let Some(embedding) = &embedding {
            let wanted = embedding.embedder.model();
            let has_documents = self.state.sources.iter().any(|source| source.documents > 0);
            let is_rebuilt = self.base.searcher()?.num_docs() == 0;
            if has_documents && !is_rebuilt && self.state.embeddings.as_deref() != Some(wanted) {
                let found = self.state.embeddings.clone().unwrap_or_else(|| "no model".to_owned());
                let directory = self.base.directory().to_path_buf();
                return Err(Error::OtherEmbeddings { directory, found, wanted: wanted.to_owned() });
            }
            self.state.embeddings = Some(wanted.to_owned());
        } else if let Some(model) = &self.state.embeddings {
            tracing::warn!(%model, "new documents get no embeddings: CAIPE_KB_EMBEDDINGS_MODEL is not set");
        }
        self.embedding = embedding;
        Ok(self)
    }

    /// The sources.
    pub fn sources(&self) -> &[Source] {
        &self.state.sources
    }

    /// Adds a source, or updates it if it is there. Its documents become visible together.
    ///
    /// # Errors
    /// If the source cannot be read; the knowledge base is then as it was.
    pub fn add(&mut self, request: Request) -> Result<Report> {
        let kind = canonical(request.kind)?;
        let known = self.state.sources.iter().find(|source| source.kind == kind).cloned();
        let source = known.unwrap_or_else(|| {
            let name = self.free_name(&request.name.unwrap_or_else(|| kind.default_name()));
            Source { name, kind, documents: 0, revision: None, updated: String::new() }
        });
        let result = self.update(source);
        if result.is_err() {
            self.writer.rollback()?;
        }
        result
    }

    /// Removes a source and its documents; returns how many.
    ///
    /// # Errors
    /// If there is no such source.
    pub fn remove(&mut self, name: &str) -> Result<usize> {
        let sources = &mut self.state.sources;
        let at = sources.iter().position(|source| source.name == name || source.kind.to_string() == name);
        let Some(at) = at else {
            let known = sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "none".to_owned() } else { known };
            return Err(Error::UnknownSource { name: name.to_owned(), known });
        };
        let source = sources.remove(at);
        self.writer.delete_term(Term::from_field_text(self.base.fields.source, &source.name));
        self.commit()?;
        Ok(source.documents)
    }

    /// Waits until the segments are merged.
    ///
    /// # Errors
    /// If the merge failed.
    pub fn close(self) -> Result<()> {
        Ok(self.writer.wait_merging_threads()?)
    }

    fn free_name(&self, wanted: &str) -> String {
        let taken = |name: &str| self.state.sources.iter().any(|source| source.name == name);
        let numbered = (2..).map(|number| format!("{wanted}-{number}"));
        std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
    }

    fn update(&mut self, mut source: Source) -> Result<Report> {
        let mut pending = Pending::new(self, &source.name)?;
        let revision = match &source.kind {
            SourceKind::Path { path } => {
                pending.folder(path)?;
                self.runtime.block_on(source::local_revision(path))
            }
            SourceKind::Page { url } => {
                pending.document(&self.runtime.block_on(source::fetch(url, &self.screen))?)?;
                None
            }
            SourceKind::Git { url, branch } => {
                Some(self.repository(&source, url, branch.as_deref(), &mut pending)?)
            }
        };
        let report = pending.finish()?;
        source.revision = revision;
        source.documents = report.documents();
        source.updated = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.state.sources.retain(|other| other.name != source.name);
        self.state.sources.push(source);
        self.state.sources.sort_by(|one, other| one.name.cmp(&other.name));
        self.commit()?;
        Ok(report)
    }

    /// Reads a repository, unless its commit is the one that was read before.
    fn repository(
        &self,
        source: &Source,
        url: &str,
        branch: Option<&str>,
        pending: &mut Pending<'_>,
    ) -> Result<String> {
        let newest = self.runtime.block_on(source::remote_revision(url, branch, &self.screen))?;
        if source.revision.as_deref() == Some(newest.as_str()) && pending.known.len() == source.documents {
            pending.keep_all();
            return Ok(newest);
        }
        let folder = Temporary::new(self.base.directory())?;
        let checkout = source::checkout(url, branch, &folder.0, &self.screen);
        let source::Checkout { revision } = self.runtime.block_on(checkout)?;
        pending.location = Some((folder.0.clone(), url.trim_end_matches(".git").to_owned()));
        pending.folder(&folder.0)?;
        Ok(revision)
    }

    fn commit(&mut self) -> Result<()> {
        let payload = serde_json::to_string(&self.state)
            .map_err(|error| TantivyError::InternalError(error.to_string()))?;
        let mut prepared = self.writer.prepare_commit()?;
        prepared.set_payload(&payload);
        prepared.commit()?;
        Ok(())
    }
}

/// An absolute path, so that the source is the same from every working directory.
fn canonical(kind: SourceKind) -> Result<SourceKind> {
    match kind {
        SourceKind::Path { path } => match path.canonicalize() {
            Ok(path) => Ok(SourceKind::Path { path }),
            Err(error) => Err(Error::Read { path, reason: error.to_string() }),
        },
        other => Ok(other),
    }
}

/// Renames the index before it is deleted, so that no half of one is left.
fn discard(directory: &Path) -> Result<()> {
    let (index, old) = (index_directory(directory), directory.join("index.old"));
    let failed = |path: &Path, error: &std::io::Error| Error::Read {
        path: path.to_path_buf(),
        reason: error.to_string(),
    };
    if old.exists() {
        fs::remove_dir_all(&old).map_err(|error| failed(&old, &error))?;
    }
    if index.exists() {
        fs::rename(&index, &old).map_err(|error| failed(&index, &error))?;
        fs::remove_dir_all(&old).map_err(|error| failed(&old, &error))?;
    }
    Ok(())
}

/// A folder that is deleted when dropped.
struct Temporary(PathBuf);

impl Temporary {
    /// Only the holder of the index's lock uses the folder.
    fn new(directory: &Path) -> Result<Self> {
        let path = directory.join("checkout");
        let removed = if path.exists() { fs::remove_dir_all(&path) } else { Ok(()) };
        removed.map_err(|error| Error::Read { path: path.clone(), reason: error.to_string() })?;
        Ok(Self(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, path = %self.0.display(), "a folder could not be deleted");
        }
    }
}

/// The changes of one source, before they are committed.
struct Pending<'a> {
    updater: &'a Updater,
    name: String,
    /// The digests of the documents in the index that are not read again yet.
    known: HashMap<String, String>,
    /// The folder of a clone, and the URL that replaces it in locations.
    location: Option<(PathBuf, String)>,
    report: Report,
    /// New chunks that are not embedded yet, with the texts.
    waiting: Vec<(TantivyDocument, String)>,
}

impl<'a> Pending<'a> {
    fn new(updater: &'a Updater, name: &str) -> Result<Self> {
        let report = Report { source: name.to_owned(), ..Report::default() };
        let known = digests(&updater.base, name)?;
        Ok(Self { updater, name: name.to_owned(), known, location: None, report, waiting: Vec::new() })
    }

    fn folder(&mut self, folder: &Path) -> Result<()> {
        let prefix = self.name.clone();
        source::walk(folder, &prefix, &mut |found| match found {
            source::Found::Document(document) => self.document(&document),
            source::Found::Skipped(path, reason) => {
                self.report.skip(&path.display().to_string(), &reason);
                Ok(())
            }
        })
    }

    /// Indexes a document, unless it is in the index as it is.
    fn document(&mut self, document: &RawDocument) -> Result<()> {
        let digest = digest(&document.bytes);
        let before = self.known.remove(&document.id);
        if before.as_ref() == Some(&digest) {
            self.report.unchanged += 1;
            return Ok(());
        }
        let extracted = match extract(document.form, &document.bytes, &self.updater.pdf) {
            Ok(extracted) if !extracted.text.trim().is_empty() => extracted,
            empty_or_failed => {
                let reason = empty_or_failed.err().unwrap_or_else(|| "it has no text".to_owned());
                // What the index has of it is older than the file, and goes.
                self.known.extend(before.map(|digest| (document.id.clone(), digest)));
                self.report.skip(&document.id, &reason);
                return Ok(());
            }
        };
        if before.is_some() {
            self.delete(&document.id);
            self.report.changed += 1;
        } else {
            self.report.added += 1;
        }
        self.index(document, &digest, &extracted)
    }

    fn index(
        &mut self,
        document: &RawDocument,
        digest: &str,
        extracted: &crate::extract::Extracted,
    ) -> Result<()> {
        let fields = self.updater.base.fields;
        let stem = Path::new(&document.id).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let title = extracted.title.clone().unwrap_or(stem);
        let location = self.location(&document.location);
        let length = extracted.text.chars().count() as u64;
        for (number, chunk) in chunk::split(extracted).into_iter().enumerate() {
            let embedded = embedded_text(&title, &chunk);
            let mut entry = TantivyDocument::new();
            entry.add_text(fields.document, &document.id);
            entry.add_text(fields.source, &self.name);
            if number == 0 {
                entry.add_text(fields.first_of, &self.name);
                entry.add_text(fields.digest, digest);
            }
            entry.add_u64(fields.number, number as u64);
            entry.add_u64(fields.length, length);
            entry.add_text(fields.anchor, chunk.anchor);
            entry.add_text(fields.location, &location);
            entry.add_text(fields.title, &title);
            entry.add_text(fields.headings, chunk.headings.join("\n"));
            entry.add_text(fields.name, &document.id);
            entry.add_text(fields.text, chunk.text);
            self.add(entry, embedded)?;
        }
        Ok(())
    }

    /// Adds a chunk, once it is embedded.
    fn add(&mut self, entry: TantivyDocument, text: String) -> Result<()> {
        if self.updater.embedding.is_none() {
            self.updater.writer.add_document(entry)?;
            return Ok(());
        }
        self.waiting.push((entry, text));
        if self.waiting.len() >= BATCH { self.embed() } else { Ok(()) }
    }

    /// Embeds and adds the waiting chunks. Sends nothing beyond the bound of tokens.
    fn embed(&mut self) -> Result<()> {
        let Some(Embedding { embedder, max_tokens }) = &self.updater.embedding else { return Ok(()) };
        let (entries, texts): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting).into_iter().unzip();
        if texts.is_empty() {
            return Ok(());
        }
        let bytes: usize = texts.iter().map(String::len).sum();
        let needed = self.report.embedded_tokens + (bytes as u64).div_ceil(TOKEN_BYTES);
        if needed > *max_tokens {
            return Err(Error::EmbeddingTokens { needed, most: *max_tokens });
        }
        let vectors = embedder.embed(&texts, Purpose::Update).map_err(Error::Embeddings)?;
        (self.report.embedded_tokens, self.report.embedded) = (needed, self.report.embedded + texts.len());
        for (mut entry, vector) in entries.into_iter().zip(vectors) {
            entry.add_bytes(self.updater.base.fields.vector, &quantized(&vector));
            self.updater.writer.add_document(entry)?;
        }
        Ok(())
    }

    /// The path or URL of a document. A file of a clone has no lasting path.
    fn location(&self, location: &str) -> String {
        let Some((folder, url)) = &self.location else { return location.to_owned() };
        let relative = folder
            .canonicalize()
            .ok()
            .and_then(|folder| Path::new(location).strip_prefix(folder).ok().map(Path::to_path_buf));
        relative.map_or_else(|| url.clone(), |relative| format!("{url}/{}", relative.display()))
    }

    fn delete(&self, id: &str) {
        self.updater.writer.delete_term(Term::from_field_text(self.updater.base.fields.document, id));
    }

    fn keep_all(&mut self) {
        self.report.unchanged = self.known.drain().count();
    }

    /// Deletes what the source no longer has.
    fn finish(mut self) -> Result<Report> {
        self.embed()?;
        for id in self.known.keys() {
            self.delete(id);
        }
        self.report.removed = self.known.len();
        Ok(self.report)
    }
}

/// What is embedded of a chunk: its text below the title and the headings that say what it is about.
pub(crate) fn embedded_text(title: &str, chunk: &Chunk) -> String {
    let headings = chunk.headings.iter().map(String::as_str).filter(|heading| *heading != title);
    let place: Vec<&str> = std::iter::once(title).chain(headings).collect();
    format!("{}\n{}", place.join(" > "), chunk.text.trim())
}

/// The digest of each document of a source.
fn digests(base: &KnowledgeBase, source: &str) -> Result<HashMap<String, String>> {
    let searcher = base.searcher()?;
    let term = Term::from_field_text(base.fields.first_of, source);
    let firsts = searcher.search(&TermQuery::new(term, IndexRecordOption::Basic), &DocSetCollector)?;
    let mut digests = HashMap::with_capacity(firsts.len());
    for address in firsts {
        let chunk: TantivyDocument = searcher.doc(address)?;
        let text =
            |field| chunk.get_first(field).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        digests.insert(text(base.fields.document), text(base.fields.digest));
    }
    Ok(digests)
}

fn digest(bytes: &[u8]) -> String {
    let digest = Sha256::new().chain_update(EXTRACTION).chain_update(bytes).finalize();
    let number = digest.iter().take(16).fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    format!("{number:032x}")
}

#[cfg(test)]
#[path = "update_tests.rs"]
mod tests;
