//! Where documents come from.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;

mod files;
mod git;
mod page;

pub(crate) use files::{Found, walk};
pub(crate) use git::{Checkout, checkout, local_revision, remote_revision};
pub(crate) use page::fetch;

/// A source in the knowledge base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Unique; the first part of the document ids of a folder.
    pub name: String,
    #[serde(flatten)]
    pub kind: SourceKind,
    /// How many documents it has in the index.
    #[serde(default)]
    pub documents: usize,
    /// The Git commit that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// When it was last read, in the form of RFC 3339.
    #[serde(default)]
    pub updated: String,
}

/// What a source is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum SourceKind {
    /// A folder or a file of this machine.
    Path { path: PathBuf },
    /// A repository, cloned for each update; the branch or tag, if not the default branch.
    Git {
        url: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    },
    /// A web page.
    Page { url: String },
}

/// A document as it is read.
#[derive(Debug)]
pub(crate) struct RawDocument {
    pub(crate) id: String,
    /// Its path or URL.
    pub(crate) location: String,
    pub(crate) form: crate::extract::Form,
    pub(crate) bytes: Vec<u8>,
}

impl SourceKind {
    /// Reads an argument of `kb add`: a path, the URL of a page, or the URL of a Git repository (`…​.git`, `git+https://…`,
    /// `ssh://…`, `git@host:path`), perhaps with `#BRANCH`.
    pub fn parse(text: &str) -> Self {
        let explicit = text.strip_prefix("git+");
        let (url, branch) = match explicit.unwrap_or(text).split_once('#') {
            Some((url, branch)) if !branch.is_empty() => (url, Some(branch.to_owned())),
            Some((url, _)) => (url, None),
            None => (explicit.unwrap_or(text), None),
        };
        let is_http = url.starts_with("https://") || url.starts_with("http://");
        let is_git = explicit.is_some()
            || url.starts_with("ssh://")
            || url.starts_with("git@")
            || (is_http && Path::new(url).extension().is_some_and(|end| end == "git"));
        match Url::parse(text) {
            _ if is_git => Self::Git { url: url.to_owned(), branch },
            Ok(mut url) if is_http => {
                url.set_fragment(None);
                Self::Page { url: url.into() }
            }
            _ => Self::Path { path: text.into() },
        }
    }

    /// The name that a source has if no other has it.
    pub(crate) fn default_name(&self) -> String {
        let name = match self {
            Self::Path { path } => path.file_name().map(|name| name.to_string_lossy().into_owned()),
            Self::Git { url, .. } => {
                let last = url.trim_end_matches('/').rsplit(['/', ':']).next();
                last.map(|name| name.trim_end_matches(".git").to_owned())
            }
            Self::Page { url } => Some(url.clone()),
        };
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| "documents".to_owned())
    }
}

impl std::fmt::Display for SourceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Path { path } => write!(f, "{}", path.display()),
            Self::Git { url, branch: Some(branch) } => write!(f, "{url}#{branch}"),
            Self::Git { url, branch: None } | Self::Page { url } => f.write_str(url),
        }
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
