//! Reads the skills of a GitHub repository through its REST API: the tree of a commit, then the files of each skill.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::{StatusCode, header};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::time::timeout;
use url::Url;

use crate::directory::{RawSkill, resource, skill_of};
use crate::document::{self, FILE};
use crate::fault::Fault;
use crate::limits::{
    DOCUMENT_BYTES, FAULTS, METADATA_BYTES, RESOURCE_BYTES, RESOURCES, SKILLS, SOURCE_BYTES,
};
use crate::resource_path;
use crate::skill::{Origin, Skill};

/// The API of github.com.
const PUBLIC_API: &str = "https://api.github.com";
/// Most bytes of the tree of a commit.
const TREE_BYTES: usize = 32 << 20;
/// Requests at a time.
const CONCURRENCY: usize = 8;
/// How long one request may take.
const REQUEST_TIME: Duration = Duration::from_secs(30);
/// How long a preview may take.
const PREVIEW_TIME: Duration = Duration::from_mins(1);
/// How long a whole repository may take.
const CRAWL_TIME: Duration = Duration::from_mins(10);
/// Most skills of a preview.
const PREVIEW: usize = 200;
/// The media type of the content of a file.
const RAW: &str = "application/vnd.github.raw+json";
/// The media type of other responses.
const JSON: &str = "application/vnd.github+json";

/// Why a repository cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CrawlError {
    #[error("{0:?} is no repository: write OWNER/NAME")]
    Location(String),
    #[error("{0:?} is no commit: write all 40 hexadecimal digits")]
    Commit(String),
    #[error("{0:?} is no URL of a GitHub API (GITHUB_API_URL, or apiUrl of the source)")]
    Api(String),
    #[error("failed to read {path} of {repository}: {reason}")]
    Request { repository: String, path: String, reason: String },
    #[error("{repository} has more than {SKILLS} skills, {} MiB, or a tree that GitHub cuts off", SOURCE_BYTES >> 20)]
    TooLarge { repository: String },
    #[error("{repository} took longer than {seconds} s")]
    Slow { repository: String, seconds: u64 },
}

/// A repository at GitHub, as `OWNER/NAME`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository(String);

impl Repository {
    /// Checks a location.
    ///
    /// # Errors
    /// If it is not `OWNER/NAME`.
    pub fn parse(location: &str) -> Result<Self, CrawlError> {
        let is_name = |name: &str| {
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            (1..=100).contains(&name.len()) && name.chars().all(plain) && !name.chars().all(|c| c == '.')
        };
        match location.trim().split_once('/') {
            Some((owner, name)) if is_name(owner) && is_name(name) => Ok(Self(location.trim().to_owned())),
            _ => Err(CrawlError::Location(location.chars().take(200).collect())),
        }
    }
}

/// Checks that a text is the full id of a commit, which names one content for ever.
///
/// # Errors
/// If it is not.
pub fn check_commit(commit: &str) -> Result<(), CrawlError> {
    let is_full = commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit());
    if is_full { Ok(()) } else { Err(CrawlError::Commit(commit.chars().take(100).collect())) }
}

/// A commit of a repository, and how it is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Location {
    /// As `OWNER/NAME`.
    pub repository: String,
    /// The full id.
    pub commit: String,
    /// The folder with the skills; an empty one is the whole repository.
    pub folder: String,
    /// The URL of the API, if it is not that of the service.
    pub api: Option<String>,
    /// The token, if it is not that of the service.
    pub token: Option<Token>,
}

/// A token, which is never shown.
#[derive(Debug, Clone)]
pub struct Token(pub SecretString);

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        self.0.expose_secret() == other.0.expose_secret()
    }
}

impl Eq for Token {}

/// A client of the GitHub API.
#[derive(Debug, Clone)]
pub struct GitHub {
    api: Url,
    token: Option<SecretString>,
    http: reqwest::Client,
}

/// A skill of a preview.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSkill {
    /// The path of the `SKILL.md`.
    pub path: String,
    pub name: String,
    pub description: String,
    /// How many other files it has.
    pub files: usize,
}

/// A preview of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crawl {
    /// The paths of all `SKILL.md`, 200 at the most.
    pub paths: Vec<String>,
    /// Those that have no fault.
    pub skills: Vec<HubSkill>,
    /// What is wrong with the others.
    pub faults: Vec<Fault>,
}

#[derive(Deserialize)]
struct Tree {
    tree: Vec<Entry>,
    #[serde(default)]
    truncated: bool,
}

#[derive(Deserialize)]
struct Entry {
    path: String,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    sha: String,
    #[serde(default)]
    size: usize,
}

impl Entry {
    /// Whether it is a file, not a link, a folder or another repository.
    fn is_file(&self) -> bool {
        self.kind == "blob" && self.mode.starts_with("100")
    }
}

/// The entries of one skill: its folder, its `SKILL.md`, and the files beside it with their paths below the folder.
struct SkillEntries<'a> {
    folder: &'a str,
    document: &'a Entry,
    files: Vec<(&'a str, &'a Entry)>,
}

impl GitHub {
    /// A client of an API, by default that of github.com, with a token.
    ///
    /// # Errors
    /// If the URL is none, or the system offers no TLS.
    pub fn new(api: Option<&str>, token: Option<SecretString>) -> Result<Self, CrawlError> {
        let api = api.unwrap_or(PUBLIC_API);
        let wrong = || CrawlError::Api(api.to_owned());
        let parsed = Url::parse(&format!("{}/", api.trim_end_matches('/'))).map_err(|_| wrong())?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong());
        }
        let http = reqwest::Client::builder()
            .timeout(REQUEST_TIME)
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("caipe/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|_| wrong())?;
        Ok(Self { api: parsed, token, http })
    }

    /// The same client with another API and token. A token is never sent to another API than its own.
    pub(crate) fn with(&self, api: Option<&str>, token: Option<&Token>) -> Result<Self, CrawlError> {
        let token = token.map(|token| token.0.clone());
        match api {
            Some(api) => Self::new(Some(api), token),
            None => Ok(Self { token: token.or_else(|| self.token.clone()), ..self.clone() }),
        }
    }

    /// All skills of a commit below a folder of the repository; an empty folder is the whole repository.
    ///
    /// # Errors
    /// The repository cannot be read or is too large. A faulty skill is left out instead.
    pub async fn skills(
        &self,
        repository: &Repository,
        (commit, folder): (&str, &str),
        origin: &Origin,
    ) -> Result<(Vec<Skill>, Vec<Fault>), CrawlError> {
        check_commit(commit)?;
        let reading = self.read_all(repository, commit, folder, origin);
        limited(repository, CRAWL_TIME, reading).await
    }

    /// The skills of the newest commit of the default branch, for people who choose a repository.
    ///
    /// # Errors
    /// The repository cannot be read.
    pub async fn preview(&self, repository: &Repository) -> Result<Crawl, CrawlError> {
        let reading = async {
            let tree = self.tree(repository, "HEAD").await?;
            let mut found = skill_entries(&tree.tree, "");
            found.truncate(PREVIEW);
            // Collected first: a closure in the stream would have to be valid for any lifetime.
            let read: Vec<_> = found.iter().map(|entries| self.preview_of(repository, entries)).collect();
            let read: Vec<Result<HubSkill, Fault>> =
                stream::iter(read).buffered(CONCURRENCY).try_collect().await?;
            let paths = found.iter().map(|entries| entries.document.path.clone()).collect();
            let mut crawl = Crawl { paths, ..Crawl::default() };
            for skill in read {
                match skill {
                    Ok(skill) => crawl.skills.push(skill),
                    Err(fault) => crawl.faults.push(fault),
                }
            }
            Ok(crawl)
        };
        limited(repository, PREVIEW_TIME, reading).await
    }

    async fn preview_of(
        &self,
        repository: &Repository,
        entries: &SkillEntries<'_>,
    ) -> Result<Result<HubSkill, Fault>, CrawlError> {
        let path = entries.document.path.clone();
        let text = match self.text(repository, entries.document, DOCUMENT_BYTES).await? {
            Ok(text) => text,
            Err(message) => return Ok(Err(Fault::new(path, message))),
        };
        Ok(match document::parse(&text, Some(entries.folder)) {
            Ok(document) => {
                let (name, description, files) = (document.name, document.description, entries.files.len());
                Ok(HubSkill { path, name, description, files })
            }
            Err(faults) => {
                let first = faults.into_iter().next();
                Err(first.map_or_else(|| Fault::new(&path, "is faulty"), |it| Fault::new(&path, it.message)))
            }
        })
    }

    async fn read_all(
        &self,
        repository: &Repository,
        commit: &str,
        folder: &str,
        origin: &Origin,
    ) -> Result<(Vec<Skill>, Vec<Fault>), CrawlError> {
        let tree = self.tree(repository, commit).await?;
        let found = skill_entries(&tree.tree, folder.trim_matches('/'));
        let too_large = || CrawlError::TooLarge { repository: repository.0.clone() };
        if found.len() > SKILLS {
            return Err(too_large());
        }
        let (mut skills, mut faults, mut bytes) = (Vec::new(), Vec::new(), 0);
        let reading: Vec<_> =
            found.iter().map(|entries| self.read_skill(repository, entries, origin)).collect();
        let mut reading = stream::iter(reading).buffered(CONCURRENCY);
        while let Some(read) = reading.next().await {
            match read? {
                Ok(skill) => {
                    bytes += skill.bytes();
                    skills.push(skill);
                }
                Err(found) => faults.extend(found.into_iter().take(FAULTS.saturating_sub(faults.len()))),
            }
            if bytes > SOURCE_BYTES {
                return Err(too_large());
            }
        }
        Ok((skills, faults))
    }

    async fn read_skill(
        &self,
        repository: &Repository,
        entries: &SkillEntries<'_>,
        origin: &Origin,
    ) -> Result<Result<Skill, Vec<Fault>>, CrawlError> {
        let fault = |entry: &Entry, message: String| Ok(Err(vec![Fault::new(&entry.path, message)]));
        let mut raw = RawSkill::default();
        match self.text(repository, entries.document, DOCUMENT_BYTES).await? {
            Ok(text) => raw.document = text,
            Err(message) => return fault(entries.document, message),
        }
        if entries.files.len() > RESOURCES {
            return fault(entries.document, format!("has more than {RESOURCES} files beside it"));
        }
        for (path, entry) in &entries.files {
            if *path == "metadata.json" {
                match self.text(repository, entry, METADATA_BYTES).await? {
                    Ok(text) => raw.metadata = Some(text),
                    Err(message) => return fault(entry, message),
                }
                continue;
            }
            if let Err(message) = resource_path::check(path) {
                return fault(entry, message);
            }
            if entry.size > RESOURCE_BYTES {
                return fault(entry, format!("is larger than {RESOURCE_BYTES} bytes"));
            }
            let bytes = self.blob(repository, entry, RESOURCE_BYTES).await?;
            raw.resources.push(resource((*path).to_owned(), &bytes));
        }
        Ok(skill_of(raw, entries.folder, origin))
    }

    async fn tree(&self, repository: &Repository, revision: &str) -> Result<Tree, CrawlError> {
        let path = format!("git/trees/{revision}?recursive=1");
        let bytes = self.get(repository, &path, (JSON, TREE_BYTES)).await?;
        let tree: Tree = serde_json::from_slice(&bytes)
            .map_err(|error| request(repository, &path, format!("the response is no tree: {error}")))?;
        if tree.truncated {
            return Err(CrawlError::TooLarge { repository: repository.0.clone() });
        }
        Ok(tree)
    }

    /// The text of a file, or why it is none.
    async fn text(
        &self,
        repository: &Repository,
        entry: &Entry,
        most: usize,
    ) -> Result<Result<String, String>, CrawlError> {
        if entry.size > most {
            return Ok(Err(format!("has {} bytes; at most {most} are read", entry.size)));
        }
        let bytes = self.blob(repository, entry, most).await?;
        Ok(String::from_utf8(bytes).map_err(|_| "is no UTF-8 text".to_owned()))
    }

    async fn blob(&self, repository: &Repository, entry: &Entry, most: usize) -> Result<Vec<u8>, CrawlError> {
        // An id from a response must not lead to another path.
        if !entry.sha.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(request(repository, &entry.path, "its id is not hexadecimal".to_owned()));
        }
        self.get(repository, &format!("git/blobs/{}", entry.sha), (RAW, most)).await
    }

    async fn get(
        &self,
        repository: &Repository,
        path: &str,
        (accept, most): (&str, usize),
    ) -> Result<Vec<u8>, CrawlError> {
        let failed = |reason: String| request(repository, path, reason);
        let url = self.api.join(&format!("repos/{}/{path}", repository.0));
        let url = url.map_err(|error| failed(error.to_string()))?;
        let mut sent = self.http.get(url).header(header::ACCEPT, accept);
        if let Some(token) = &self.token {
            sent = sent.bearer_auth(token.expose_secret());
        }
        let mut response = sent.send().await.map_err(|error| failed(error.without_url().to_string()))?;
        if !response.status().is_success() {
            return Err(failed(explained(response.status(), self.token.is_some())));
        }
        let mut bytes = Vec::new();
        while let Some(piece) =
            response.chunk().await.map_err(|error| failed(error.without_url().to_string()))?
        {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                return Err(failed(format!("the response has more than {most} bytes")));
            }
        }
        Ok(bytes)
    }
}

fn request(repository: &Repository, path: &str, reason: String) -> CrawlError {
    CrawlError::Request { repository: repository.0.clone(), path: path.to_owned(), reason }
}

/// The reason of a failure, with what to do.
fn explained(status: StatusCode, has_token: bool) -> String {
    let advice = match status {
        StatusCode::NOT_FOUND if !has_token => {
            ": correct the name, or give a token for a private repository (GITHUB_TOKEN, or secretRef of the source)"
        }
        StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS if !has_token => {
            ": GitHub limits requests without a token; give one (GITHUB_TOKEN, or secretRef of the source)"
        }
        StatusCode::UNAUTHORIZED => ": the token is invalid or expired",
        _ => "",
    };
    format!("GitHub answers {status}{advice}")
}

async fn limited<T>(
    repository: &Repository,
    time: Duration,
    reading: impl Future<Output = Result<T, CrawlError>>,
) -> Result<T, CrawlError> {
    let slow = || CrawlError::Slow { repository: repository.0.clone(), seconds: time.as_secs() };
    timeout(time, reading).await.unwrap_or_else(|_| Err(slow()))
}

/// The skills of a tree below a folder, in the order of their paths. A skill in the folder of another is a skill of its own.
fn skill_entries<'a>(tree: &'a [Entry], below: &str) -> Vec<SkillEntries<'a>> {
    let is_below =
        |path: &str| below.is_empty() || path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'));
    let documents = tree.iter().filter(|entry| entry.is_file() && is_below(&entry.path));
    let mut skills: BTreeMap<&str, SkillEntries<'a>> = documents
        .filter_map(|document| {
            let path = document.path.strip_suffix(FILE)?.strip_suffix('/')?;
            let folder = path.rsplit('/').next()?;
            Some((path, SkillEntries { folder, document, files: Vec::new() }))
        })
        .collect();
    for entry in tree.iter().filter(|entry| entry.is_file() && !entry.path.ends_with("SKILL.md")) {
        let mut folders =
            entry.path.rmatch_indices('/').map(|(at, _)| entry.path.get(..at).unwrap_or_default());
        // The innermost skill.
        let Some(path) = folders.find(|folder| skills.contains_key(folder)) else { continue };
        let relative = entry.path.get(path.len() + 1..).unwrap_or_default();
        if let Some(skill) = skills.get_mut(path) {
            skill.files.push((relative, entry));
        }
    }
    skills.into_values().collect()
}

#[cfg(test)]
#[path = "github_tests.rs"]
mod tests;
