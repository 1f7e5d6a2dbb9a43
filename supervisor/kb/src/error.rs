//! The errors of the knowledge base.

use std::path::PathBuf;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on the knowledge base failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no knowledge base in {}; create one with `caipe-supervisor kb add PATH`", .0.display())]
    Missing(PathBuf),
    #[error(
        "the index in {} is damaged ({reason}); rebuild it with `caipe-supervisor kb add --rebuild`, and name the sources that \
         `kb list` does not show",
        .directory.display()
    )]
    Damaged { directory: PathBuf, reason: String },
    #[error(
        "the index in {} has the format {found}, and this version reads format {expected}; rebuild it with `caipe-supervisor kb \
         add --rebuild`",
        .directory.display()
    )]
    Format { directory: PathBuf, found: u32, expected: u32 },
    #[error("another process is changing the knowledge base in {}; retry when it has ended", .0.display())]
    Locked(PathBuf),
    #[error("failed to read {}: {reason}", .path.display())]
    Read { path: PathBuf, reason: String },
    #[error("failed to fetch {url}: {reason}")]
    Fetch { url: String, reason: String },
    #[error("unknown source {name:?}; the sources are {known}")]
    UnknownSource { name: String, known: String },
    #[error("there is no document {0:?}; use a document_id from the results of search")]
    UnknownDocument(String),
    #[error(
        "the index in {} has embeddings of {found}, not of {wanted}; make them again with `caipe-supervisor kb add --rebuild`, or \
         unset CAIPE_KB_EMBEDDINGS_MODEL",
        .directory.display()
    )]
    OtherEmbeddings { directory: PathBuf, found: String, wanted: String },
    #[error("failed to embed documents: {0}")]
    Embeddings(String),
    #[error(
        "the new documents have about {needed} tokens, and at most {most} are embedded at once; add them in parts, or raise \
         CAIPE_KB_EMBEDDINGS_MAX_TOKENS"
    )]
    EmbeddingTokens { needed: u64, most: u64 },
    #[error("the query has no words to search for")]
    EmptyQuery,
    #[error("the filter {0:?} is unknown; the only filter is datasource_id")]
    UnknownFilter(String),
    #[error("{0} holds more than {1} documents; add its folders one by one")]
    TooMany(String, usize),
    #[error("failed to run git for {url}: {reason}")]
    Git { url: String, reason: String },
    #[error("the index failed: {0}")]
    Index(#[from] tantivy::TantivyError),
}
