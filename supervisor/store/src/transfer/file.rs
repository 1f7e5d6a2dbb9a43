//! The file of an export: a header, one record per line, and an end with counts and a digest.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::error::TransferError;
use super::reader::RecordSource;
use super::record::Record;

/// The name of the format, and its version. A reader refuses newer versions, before it imports anything. Version 2 has facts.
const FORMAT: &str = "caipe-store-export";
const VERSION: u32 = 2;

/// Most bytes of a line: a conversation with many messages.
const MAX_LINE: u64 = 1 << 32;

/// The first line.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Header {
    format: String,
    version: u32,
    exported_at: Timestamp,
    backend: String,
}

impl Header {
    pub(super) fn new(backend: &str) -> Self {
        let (format, backend) = (FORMAT.to_owned(), backend.to_owned());
        Self { format, version: VERSION, exported_at: Timestamp::now(), backend }
    }
}

/// The last line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) conversations: u64,
    pub(super) tasks: u64,
    /// Chunks of events.
    pub(super) events: u64,
    /// Missing in version 1.
    #[serde(default)]
    pub(super) facts: u64,
}

impl Counts {
    pub(super) fn add(&mut self, record: &Record) {
        match record {
            Record::Conversation(_) => self.conversations += 1,
            Record::Task(_) => self.tasks += 1,
            Record::Events(events) => self.events += events.chunks.len() as u64,
            Record::Facts(facts) => self.facts += facts.facts.len() as u64,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct End {
    end: Counts,
    /// SHA-256 of the lines of the records, in hexadecimal.
    sha256: String,
}

/// What an export has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// The digest of the records.
    pub id: String,
    pub conversations: u64,
    pub tasks: u64,
    pub facts: u64,
}

/// Writes an export.
pub(crate) struct ExportWriter<W> {
    to: W,
    digest: Sha256,
    pub(super) counts: Counts,
}

impl<W: Write> ExportWriter<W> {
    /// Begins an export of a store of this backend.
    pub(crate) fn new(to: W, backend: &str) -> Result<Self, TransferError> {
        let mut writer = Self { to, digest: Sha256::new(), counts: Counts::default() };
        writer.line(&Header::new(backend))?;
        writer.digest.reset();
        Ok(writer)
    }

    pub(crate) fn record(&mut self, record: &Record) -> Result<(), TransferError> {
        self.counts.add(record);
        self.line(record)
    }

    pub(crate) fn finish(mut self) -> Result<Exported, TransferError> {
        let end = End { end: self.counts, sha256: hex(&self.digest.finalize_reset()) };
        self.line(&end)?;
        self.to.flush().map_err(TransferError::Write)?;
        let Counts { conversations, tasks, facts, events: _ } = self.counts;
        Ok(Exported { id: end.sha256, conversations, tasks, facts })
    }

    fn line(&mut self, value: &impl Serialize) -> Result<(), TransferError> {
        let mut line = crate::json::encode(value)?;
        line.push('\n');
        self.digest.update(&line);
        self.to.write_all(line.as_bytes()).map_err(TransferError::Write)
    }
}

fn hex(digest: &[u8]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A complete export, which is read from its first record on.
pub struct ExportFile {
    lines: Lines,
    id: String,
    backend: String,
}

impl ExportFile {
    /// Opens an export. Reads the whole file once, to refuse one that is not complete or was changed.
    ///
    /// # Errors
    /// When the file cannot be read, is no export, has a newer version, is not complete, or was changed.
    pub fn open(path: &Path) -> Result<Self, TransferError> {
        let id = check(path)?;
        let mut lines = Lines::open(path)?;
        let backend = lines.header()?.backend;
        Ok(Self { lines, id, backend })
    }

    /// The backend of the exported store.
    pub(crate) fn backend(&self) -> &str {
        &self.backend
    }

    /// The digest of the records. Exports of the same content have the same id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

#[async_trait]
impl RecordSource for ExportFile {
    async fn next(&mut self) -> Result<Option<Record>, TransferError> {
        let Some(line) = self.lines.next()? else { return Ok(None) };
        if is_end(&line) {
            return Ok(None);
        }
        self.lines.parse(&line).map(Some)
    }
}

/// Reads the whole file, and returns the digest of its records.
fn check(path: &Path) -> Result<String, TransferError> {
    let mut lines = Lines::open(path)?;
    lines.header()?;
    loop {
        let digest = lines.digest.clone();
        let Some(line) = lines.next()? else {
            return Err(lines.error(&"it has no end, so the export did not complete; export again"));
        };
        if is_end(&line) {
            let End { sha256, .. } = lines.parse(&line)?;
            let is_last = lines.next()?.is_none();
            return if is_last && sha256 == hex(&digest.finalize()) {
                Ok(sha256)
            } else {
                Err(lines.error(&"its digest is wrong, so the file was changed; export again"))
            };
        }
    }
}

fn is_end(line: &str) -> bool {
    line.starts_with(r#"{"end":"#)
}

/// The lines of a file, with the digest of those that were read.
struct Lines {
    file: String,
    from: BufReader<std::fs::File>,
    digest: Sha256,
    number: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Self, TransferError> {
        let file = path.display().to_string();
        match std::fs::File::open(path) {
            Ok(from) => Ok(Self {
                file,
                from: BufReader::with_capacity(1 << 16, from),
                digest: Sha256::new(),
                number: 0,
            }),
            Err(error) => Err(TransferError::Read { file, reason: error.to_string() }),
        }
    }

    fn error(&self, reason: &dyn std::fmt::Display) -> TransferError {
        TransferError::Read { file: self.file.clone(), reason: reason.to_string() }
    }

    fn next(&mut self) -> Result<Option<String>, TransferError> {
        let mut line = Vec::new();
        let read = (&mut self.from).take(MAX_LINE).read_until(b'\n', &mut line);
        read.map_err(|error| self.error(&error))?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        self.digest.update(&line);
        if line.last() != Some(&b'\n') {
            return Err(
                self.error(&"its last line is not complete, so the export did not complete; export again")
            );
        }
        String::from_utf8(line).map(Some).map_err(|_| self.error(&format!("line {} is no text", self.number)))
    }

    fn parse<T: for<'a> Deserialize<'a>>(&self, line: &str) -> Result<T, TransferError> {
        serde_json::from_str(line).map_err(|error| self.error(&format!("line {}: {error}", self.number)))
    }

    /// The header. The digest begins after it.
    fn header(&mut self) -> Result<Header, TransferError> {
        let no_export = "it is no export of a store: name a file that `store export` has written";
        let line = self.next().ok().flatten().ok_or_else(|| self.error(&no_export))?;
        let header: Header = serde_json::from_str(&line).map_err(|_| self.error(&no_export))?;
        if header.format != FORMAT {
            return Err(self.error(&no_export));
        }
        if header.version > VERSION {
            let reason = format!(
                "it has version {}, this program knows {VERSION}; run a newer program",
                header.version
            );
            return Err(self.error(&reason));
        }
        self.digest.reset();
        Ok(header)
    }
}
