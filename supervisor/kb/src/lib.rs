//! The embedded knowledge base: documents, their index, and its tools over MCP.
//!
//! [`Updater`] reads sources (folders, Git repositories, web pages) into the index below a directory; [`KnowledgeBase`] searches
//! it; [`mcp::routes`] serves the search to agents. One commit of the index holds the documents and the list of sources, so a
//! process that is killed leaves the previous state, and every reader sees one state.

mod chunk;
mod embeddings;
mod error;
mod extract;
mod index;
pub mod mcp;
mod search;
mod source;
mod update;
mod vectors;

pub use embeddings::{Embedder, Provider, Purpose};
pub use error::{Error, Result};
pub use extract::{PDF_TEXT_COMMAND, PdfReader, WebPage, pdf_text_main, read_web_page};
pub use index::{KnowledgeBase, State};
pub use search::{Hit, MAX_RESULTS, Query};
pub use source::{Source, SourceKind};
pub use update::{Embedding, Report, Request, Updater};

#[cfg(test)]
mod quality_tests;
