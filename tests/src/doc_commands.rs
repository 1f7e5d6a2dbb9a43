//! Commands in a document with what they print: run as they stand there, they must say what the document says.
//!
//! A block of three backquotes and `console` holds lines `$ COMMAND`, each followed by its output. A line `...` in the
//! output matches any number of lines, and `...` at the end of a line for the rest of it.

mod blocks;
pub mod laptop;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
pub use blocks::{Block, Place, all_blocks, blocks};
use regex_lite::Regex;

/// The time within which the output must become that of the document.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// A command and what it prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What is typed.
    pub command: String,
    /// What comes then.
    pub output: String,
}

/// The part of a document from this line on, to the next heading of the first two levels.
pub fn section<'a>(document: &'a str, begin: &str) -> Result<&'a str> {
    let (_, rest) = document.split_once(begin).with_context(|| format!("there is no {begin}"))?;
    Ok(["\n## ", "\n# "].iter().filter_map(|end| rest.find(end)).min().map_or(rest, |end| &rest[..end]))
}

/// The commands of all `console` blocks.
pub fn steps(text: &str) -> Vec<Step> {
    let blocks = text.split("```console\n").skip(1);
    blocks.flat_map(|block| blocks::session(block.split("```").next().unwrap_or_default())).collect()
}

impl Step {
    /// The same with another name, as that of a namespace.
    #[must_use]
    pub fn with(&self, name: &str, other: &str) -> Self {
        Self { command: self.command.replace(name, other), output: self.output.replace(name, other) }
    }

    /// Runs the command in this shell, and compares its output with the document.
    /// A command has to fail that is said to say `Error`, a plain `no`, that something is invalid, or that nobody answers.
    pub fn holds(&self, shell: impl Fn() -> Command) -> Result<()> {
        let begin = Instant::now();
        loop {
            let outcome = self.once(&mut shell());
            // What one looks at may take a moment to be so.
            if outcome.is_ok() || !self.looks() || begin.elapsed() > TIMEOUT {
                return outcome;
            }
            pause();
        }
    }

    fn once(&self, shell: &mut Command) -> Result<()> {
        let output = shell.args(["-c", &self.command]).output()?;
        let text =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        println!("$ {}\n{text}", self.command);
        ensure!(output.status.success() != self.fails(), "{}: {}: {text}", self.command, output.status);
        let (expected, found) = (plain(&self.output), plain(&text));
        ensure!(fits(&expected, &found), "{}\nexpected {expected:#?}\nfound {found:#?}", self.command);
        Ok(())
    }

    /// Whether it changes nothing.
    fn looks(&self) -> bool {
        [" get ", " describe "].iter().any(|word| self.command.contains(word))
    }

    fn fails(&self) -> bool {
        let begins = |word: &&str| self.output.starts_with(word);
        ["Error", "error", "The connection to the server"].iter().any(begins)
            || self.output == "no\n"
            || self.output.contains(" is invalid:")
    }
}

/// The thing that is waited for is what a command says: there is nothing but to ask again.
#[expect(clippy::disallowed_methods, reason = "between two looks at a cluster")]
fn pause() {
    std::thread::sleep(PAUSE);
}

/// A text without what differs from one run to the next: ages, names of pods, times, addresses, widths of columns.
fn plain(text: &str) -> Vec<String> {
    let rules = [
        (r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z", "TIME"),
        (r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun) .* 20[0-9]{2}", "TIME"),
        (r"[0-9a-f]{64}", "HASH"),
        (r"-[0-9a-f]{8,10}-[a-z0-9]{5}\b", "-POD"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UID"),
        (r"\b10\.[0-9]+\.[0-9]+\.[0-9]+\b", "ADDRESS"),
        (r"\(x[0-9]+ over AGE\)", ""),
        (r"\b[0-9]+[dhms]([0-9]+[hms])?\b", "AGE"),
        (r"AGE \(x[0-9]+ over AGE\)", "AGE"),
        (r"Resource Version: +[0-9]+", "Resource Version: N"),
        (r"[ \t]+", " "),
    ];
    let mut text = text.to_owned();
    for (pattern, with) in rules {
        if let Ok(pattern) = Regex::new(pattern) {
            text = pattern.replace_all(&text, with).into_owned();
        }
    }
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// Whether the lines are those expected; an expected `...` matches any number of lines.
fn fits(expected: &[String], found: &[String]) -> bool {
    match expected.split_first() {
        None => found.is_empty(),
        Some((line, rest)) if line == "..." => {
            (0..=found.len()).any(|at| found.get(at..).is_some_and(|found| fits(rest, found)))
        }
        Some((line, rest)) => {
            found.split_first().is_some_and(|(first, found)| is_line(line, first) && fits(rest, found))
        }
    }
}

fn is_line(expected: &str, found: &str) -> bool {
    expected.strip_suffix("...").map_or(found == expected, |begin| found.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn dots_stand_for_any_lines() {
        assert!(fits(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
        assert!(fits(&lines("a\n..."), &lines("a")));
        assert!(!fits(&lines("a\n...\nd"), &lines("a\nb\nc")));
        assert!(!fits(&lines("a"), &lines("a\nb")));
        assert!(fits(&lines("a b..."), &lines("a bcd")) && !fits(&lines("a b..."), &lines("a cd")));
    }

    #[test]
    fn what_differs_from_run_to_run_does_not_count() {
        let one = "NAME AGE\npod/platform-cfcd5b47-5p44c  13s\nat 10.0.0.7 for 3m4s (x5 over 3m4s)";
        let other = "NAME   AGE\npod/platform-7f9c8d5b66-abcde 12m\nat 10.1.0.9 for 9s (x2 over 10s)";
        assert_eq!(plain(one), plain(other));
        assert_ne!(plain("3 of 4"), plain("4 of 4"));
    }

    #[test]
    fn a_section_ends_with_the_next_heading_and_has_its_commands() -> Result<()> {
        let document = "# A\n## B\n```console\n$ one\nsaid\n$ two\n```\n### C\n```console\n$ three\n```\n## D\n```console\n$ four\n```\n";
        let commands: Vec<_> =
            steps(section(document, "## B")?).into_iter().map(|step| step.command).collect();
        assert_eq!(commands, ["one", "two", "three"]);
        assert!(section(document, "## E").is_err());
        Ok(())
    }

    #[test]
    fn an_output_that_differs_is_reported() {
        let step =
            |command: &str, output: &str| Step { command: command.to_owned(), output: output.to_owned() };
        let shell = || Command::new("sh");
        assert!(step("echo a", "a\n").holds(shell).is_ok());
        assert!(step("echo b", "a\n").holds(shell).is_err());
        assert!(step("echo error: no >&2; exit 1", "error: no\n").holds(shell).is_ok());
        assert!(step("false", "").holds(shell).is_err());
    }
}
