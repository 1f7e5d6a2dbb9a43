//! The text of a PDF file, read by a child process: a PDF file can be a decompression bomb, and parsers of PDF have faults.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;

use lopdf::Document;
use rustix::process::{Resource, Rlimit, setrlimit};

/// The hidden subcommand by which the program runs itself as [`pdf_text_main`].
pub const PDF_TEXT_COMMAND: &str = "pdf-text";
/// The most text of one file, in bytes.
const MAX_TEXT_BYTES: usize = 8 << 20;
/// The most bytes that one compressed stream may become.
const MAX_STREAM_BYTES: usize = 64 << 20;
const MAX_MEMORY_BYTES: u64 = 1 << 30;
const MAX_CPU_SECONDS: u64 = 20;
/// The exit code for a file that cannot be read; the reason is on stderr.
const EXIT_FAILED: i32 = 3;

/// Starts the process that reads PDF files.
#[derive(Debug, Clone)]
pub struct PdfReader {
    program: PathBuf,
    arguments: Vec<String>,
}

impl PdfReader {
    /// Runs this program with these arguments; its `main` must call [`pdf_text_main`] for them.
    pub fn new(program: PathBuf, arguments: &[&str]) -> Self {
        Self { program, arguments: arguments.iter().map(|&argument| argument.to_owned()).collect() }
    }

    /// The text of a file.
    pub(super) fn text(&self, file: &[u8]) -> Result<String, String> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("the reader of PDF files could not be started: {error}"))?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let mut text = Vec::new();
        let read = thread::scope(|scope| {
            // A child that fails early reports it by its status.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(file)));
            stdout.map(|stdout| stdout.take(MAX_TEXT_BYTES as u64).read_to_end(&mut text))
        });
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        match (output.status.code(), read) {
            (Some(0), Some(Ok(_))) => Ok(String::from_utf8_lossy(&text).into_owned()),
            (Some(EXIT_FAILED), _) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            _ => Err("it takes too much memory or time, or the parser failed".to_owned()),
        }
    }
}

/// Reads a PDF file from stdin and writes its text to stdout. Returns the exit code: 0, or 3 with the reason on stderr.
///
/// The process limits its own memory and time. Call it first in `main`, before any thread or runtime starts.
pub fn pdf_text_main() -> i32 {
    for (resource, value) in
        [(Resource::As, MAX_MEMORY_BYTES), (Resource::Cpu, MAX_CPU_SECONDS), (Resource::Core, 0)]
    {
        let limit = Rlimit { current: Some(value), maximum: Some(value) };
        if let Err(error) = setrlimit(resource, limit) {
            return failed(&format!("the limit of {resource:?} could not be set: {error}"));
        }
    }
    let mut file = Vec::new();
    if let Err(error) = io::stdin().lock().read_to_end(&mut file) {
        return failed(&error.to_string());
    }
    match text(&file, MAX_STREAM_BYTES) {
        Ok(text) => io::stdout().lock().write_all(text.as_bytes()).map_or(EXIT_FAILED, |()| 0),
        Err(reason) => failed(&reason),
    }
}

fn failed(reason: &str) -> i32 {
    let written = writeln!(io::stderr(), "{reason}");
    if written.is_err() { EXIT_FAILED + 1 } else { EXIT_FAILED }
}

/// The text of the pages. A page with a stream that becomes longer than `max_stream_bytes` is left out.
pub(super) fn text(file: &[u8], max_stream_bytes: usize) -> Result<String, String> {
    let document = Document::load_mem(file)
        .map_err(|error| format!("it is not a PDF file that can be read: {error}"))?;
    if document.is_encrypted() {
        return Err("it is encrypted".to_owned());
    }
    let mut text = String::new();
    for page in document.get_pages().into_keys() {
        let pieces = document.extract_text_chunks_with_limit(&[page], max_stream_bytes);
        let page: String = pieces.into_iter().flatten().collect();
        if !page.trim().is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n\n" });
            text.push_str(page.trim());
        }
        if text.len() > MAX_TEXT_BYTES {
            break;
        }
    }
    if text.is_empty() { Err("it contains no text, only images".to_owned()) } else { Ok(text) }
}
