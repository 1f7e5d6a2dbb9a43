//! The blocks of commands on a page, and where each block runs.
//!
//! A comment above a block states it: `<!-- runs on: laptop -->`, `<!-- runs on: node -->`, `<!-- checked by: TEST -->` or
//! `<!-- not run: REASON -->`. It applies to all blocks until the next such comment or the next heading of level 1 or 2.

use anyhow::{Result, ensure};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Parser, Tag};

use super::Step;

/// Where the commands of a block run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On the machine of the tests, with the built programs in `PATH`.
    Laptop,
    /// On the Kubernetes node of `make e2e`.
    Node,
    /// In another test: `target::function`.
    CheckedBy(String),
    /// Nowhere, for this reason.
    NotRun(String),
}

/// A block of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line of the page on which the block begins, counted from 1.
    pub line: usize,
    /// Where the commands run; nothing if no comment states it.
    pub place: Option<Place>,
    /// The commands.
    pub steps: Vec<Step>,
}

/// The commands of a page that run in a place, in order.
///
/// # Errors
/// If a block of the page has no place.
pub fn blocks(page: &str, place: &Place) -> Result<Vec<Step>> {
    let all = all_blocks(page);
    let missing: Vec<_> = all.iter().filter(|block| block.place.is_none()).map(|block| block.line).collect();
    ensure!(missing.is_empty(), "no comment states where the commands of lines {missing:?} run");
    Ok(all
        .into_iter()
        .filter(|block| block.place.as_ref() == Some(place))
        .flat_map(|block| block.steps)
        .collect())
}

/// All blocks of commands on a page, in order.
pub fn all_blocks(page: &str) -> Vec<Block> {
    let (mut found, mut place, mut language) = (Vec::new(), None, None);
    for (event, range) in Parser::new(page).into_offset_iter() {
        match event {
            Event::Start(Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. }) => place = None,
            Event::Html(text) => place = text.lines().find_map(parse_place).or(place),
            Event::Start(Tag::CodeBlock(kind)) => {
                let line = page.get(..range.start).unwrap_or_default().matches('\n').count() + 1;
                language = Some((kind, line, String::new()));
            }
            Event::Text(part) => {
                if let Some((_, _, text)) = &mut language {
                    text.push_str(&part);
                }
            }
            Event::End(_) => {
                let Some((kind, line, text)) = language.take() else { continue };
                let Some(steps) = commands(&kind, &text) else { continue };
                found.push(Block { line, place: place.clone(), steps });
            }
            _ => {}
        }
    }
    found
}

fn parse_place(line: &str) -> Option<Place> {
    let comment = line.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")?;
    match comment.split_once(": ")? {
        ("runs on", "laptop") => Some(Place::Laptop),
        ("runs on", "node") => Some(Place::Node),
        ("checked by", test) => Some(Place::CheckedBy(test.to_owned())),
        ("not run", reason) => Some(Place::NotRun(reason.to_owned())),
        _ => None,
    }
}

/// The steps of a block of code; nothing if the block has no commands.
fn commands(kind: &CodeBlockKind<'_>, text: &str) -> Option<Vec<Step>> {
    match kind {
        CodeBlockKind::Fenced(language) => match language.as_ref() {
            "console" => Some(session(text)),
            "sh" | "bash" | "shell" => Some(script(text)),
            _ => None,
        },
        CodeBlockKind::Indented => Some(script(text)),
    }
}

/// The steps of a `console` block: a command after `$ `, then its output. A command continues after a `\` at the end of a
/// line, and up to the end of its here-document.
pub(super) fn session(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (_, Some(step)) if step.output.is_empty() && is_open(&step.command) => {
                step.command.extend(["\n", line]);
            }
            (Some(command), _) => steps.push(Step { command: command.to_owned(), output: String::new() }),
            (None, Some(step)) => step.output.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    steps
}

fn is_open(command: &str) -> bool {
    let end = |begin: &str| begin.split(['\n', ' ']).next().unwrap_or_default().trim_matches('\'').to_owned();
    let document = command.split_once("<<").map(|(_, begin)| end(begin));
    command.ends_with('\\') || document.is_some_and(|end| !command.ends_with(&format!("\n{end}")))
}

/// The steps of a block without output: one for the whole block, and one more after each program in the background.
fn script(text: &str) -> Vec<Step> {
    let mut commands = vec![String::new()];
    for line in text.lines() {
        if commands.last().is_some_and(|command| command.ends_with(" &\n")) {
            commands.push(String::new());
        }
        commands.iter_mut().rev().take(1).for_each(|command| command.extend([line, "\n"]));
    }
    let step = |command: String| Step { command: command.trim_end().to_owned(), output: "...\n".to_owned() };
    commands.into_iter().map(step).collect()
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
