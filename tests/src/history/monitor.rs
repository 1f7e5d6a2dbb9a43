//! The commits of a Redis store, from the server's own record of its commands.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::{Commit, Fence, Micros, StoreRecord};

/// Records the commits of a server until it ends, or until this is dropped.
#[derive(Debug)]
pub struct Monitor {
    records: Arc<Mutex<Vec<StoreRecord>>>,
    reading: JoinHandle<()>,
}

impl Drop for Monitor {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl Monitor {
    /// Records everything that the server at `HOST:PORT` does from now on.
    pub async fn start(address: &str) -> Result<Self> {
        let records = Arc::default();
        let reading = follow(address, Arc::clone(&records)).await?;
        Ok(Self { records, reading })
    }

    /// Continues with the server, which was started again.
    pub async fn resume(&mut self, address: &str) -> Result<()> {
        // What the server has sent before its end is still to be read.
        (&mut self.reading).await?;
        self.records.lock().unwrap_or_else(PoisonError::into_inner).push(StoreRecord::Gap(super::now()));
        self.reading = follow(address, Arc::clone(&self.records)).await?;
        Ok(())
    }

    /// Everything so far.
    pub fn records(&self) -> Vec<StoreRecord> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn follow(address: &str, records: Arc<Mutex<Vec<StoreRecord>>>) -> Result<JoinHandle<()>> {
    let mut stream = TcpStream::connect(address).await.context("failed to reach Redis")?;
    stream.write_all(b"MONITOR\r\n").await?;
    let mut lines = BufReader::new(stream).lines();
    let accepted = lines.next_line().await?;
    ensure!(accepted.as_deref() == Some("+OK"), "the server does not record its commands: {accepted:?}");
    Ok(tokio::spawn(async move {
        let mut parser = Parser::default();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(commit) = parser.read(&line) {
                records.lock().unwrap_or_else(PoisonError::into_inner).push(StoreRecord::Commit(commit));
            }
        }
    }))
}

/// Reads the lines of `MONITOR`: a script, then each command of the script.
#[derive(Debug, Default)]
pub(super) struct Parser {
    /// The arguments of the script that runs.
    script: Vec<String>,
    /// The state that the script has set.
    state: Option<String>,
}

impl Parser {
    /// A commit, if this line is the last write of one.
    pub(super) fn read(&mut self, line: &str) -> Option<Commit> {
        let (at, rest) = line.strip_prefix('+')?.split_once(" [")?;
        let (source, command) = rest.split_once("] ")?;
        let words = words(command);
        if !source.ends_with("lua") {
            self.state = None;
            let is_script = words.first().is_some_and(|word| word.eq_ignore_ascii_case("evalsha"));
            self.script = if is_script { words.into_iter().skip(4).collect() } else { Vec::new() };
            return None;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["HSET", key, "record", _, "context", _, "phase", phase, ..] => {
                self.state = Some(phase.replace('_', "-"));
                // A commit without a fence writes nothing after this that is the same in all.
                (!has_fence(&self.script)).then(|| self.commit(at, key, None)).flatten()
            }
            ["HSET", key, "number", number, "last", ..] => {
                let fence = Fence { token: token(&self.script)?, number: number.parse().ok()? };
                self.commit(at, key, Some(fence))
            }
            _ => None,
        }
    }

    fn commit(&mut self, at: &str, key: &str, fence: Option<Fence>) -> Option<Commit> {
        let (_, task) = key.split_once("}:t:")?;
        let sender = self.script.first()?.clone();
        Some(Commit { at: micros(at)?, task: task.to_owned(), sender, fence, state: self.state.take() })
    }
}

fn micros(time: &str) -> Option<Micros> {
    let (seconds, fraction) = time.split_once('.')?;
    Some(seconds.parse::<Micros>().ok()? * 1_000_000 + fraction.parse::<Micros>().ok()?)
}

/// The words of a command, each in quotes.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (&mut word, letter) {
            (Some(_), '"') => words.extend(word.take()),
            (Some(word), '\\') => word.extend(letters.next()),
            (Some(word), letter) => word.push(letter),
            (None, '"') => word = Some(String::new()),
            (None, _) => {}
        }
    }
    words
}

/// Reads the arguments of the script that commits, in the order of `commit.lua`.
fn fence_of(arguments: &[String]) -> Option<&[String]> {
    let count = |rest: &[String]| rest.first().and_then(|count| count.parse::<usize>().ok());
    // The sender, a nonce and the time.
    let mut rest = arguments.get(3..)?;
    let flag = |rest: &mut &[String]| -> Option<bool> {
        let (first, others) = rest.split_first()?;
        *rest = others;
        Some(first == "1")
    };
    if flag(&mut rest)? {
        rest = rest.get(6..)?;
    }
    if flag(&mut rest)? {
        rest = rest.get(2..)?;
    }
    if flag(&mut rest)? {
        let lists = count(rest.get(2..)?)?;
        rest = rest.get(3..)?;
        for _ in 0..lists {
            let items = count(rest.get(2..)?)?;
            rest = rest.get(3 + items..)?;
        }
    }
    flag(&mut rest)?.then_some(rest)
}

fn has_fence(arguments: &[String]) -> bool {
    fence_of(arguments).is_some()
}

fn token(arguments: &[String]) -> Option<u64> {
    fence_of(arguments)?.get(1)?.parse().ok()
}
