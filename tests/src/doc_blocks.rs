//! The blocks of commands of a page, each with the place where a test types it.
//!
//! A comment above a block, such as `<!-- runs on: laptop -->`, is its marker. It holds for every block up to the next
//! marker or the next heading of the first two levels.

use anyhow::{Context, Result, ensure};

use crate::doc_commands::Step;

/// Where the commands of a block are typed, or why they are not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// On this machine, with the built programs.
    Laptop,
    /// On the Kubernetes node of `make e2e`.
    Node,
    /// By this test, which has its own way to type or to check them.
    CheckedBy(String),
    /// Nowhere, for this reason.
    NotRun(String),
}

/// A block of a page with commands, or with the content of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The number of its first line on the page.
    pub line: usize,
    /// `None` if the page does not say.
    pub place: Option<Place>,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Each command of a block `console`, with its output.
    Session(Vec<Step>),
    /// The lines of a block `sh` or `bash`, whose output is not compared.
    Script(String),
    /// The file that the reader writes: its name, from a comment `<!-- file: NAME -->` above it, and its text.
    File(String, String),
}

impl Place {
    fn parse(comment: &str) -> Option<Self> {
        let (key, value) = comment.split_once(": ")?;
        match (key, value.trim()) {
            ("runs on", "laptop") => Some(Self::Laptop),
            ("runs on", "node") => Some(Self::Node),
            ("checked by", test) => Some(Self::CheckedBy(test.to_owned())),
            ("not run", reason) => Some(Self::NotRun(reason.to_owned())),
            _ => None,
        }
    }
}

/// The blocks of a page that contain commands or files, in order.
pub fn blocks(text: &str) -> Result<Vec<Block>> {
    let (mut found, mut place, mut file) = (Vec::new(), None, None);
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(comment) = comment(line) {
            file = comment.strip_prefix("file: ").map(str::to_owned);
            place = Place::parse(comment).or(place);
        } else if line.starts_with("# ") || line.starts_with("## ") {
            place = None;
        } else if let Some(language) = line.trim_start().strip_prefix("```") {
            let indent = line.len() - line.trim_start().len();
            let body = fenced(&mut lines, indent).with_context(|| format!("line {number}: an open block"))?;
            let content = content(language, &body, file.take());
            found.extend(content.map(|content| Block { line: number, place: place.clone(), content }));
        }
        ensure!(
            !is_indented_command(line),
            "line {number}: a command outside of a block `console` or `sh`: {line}"
        );
    }
    Ok(found)
}

/// The text of a comment that fills a line.
fn comment(line: &str) -> Option<&str> {
    line.trim().strip_prefix("<!-- ")?.strip_suffix(" -->")
}

fn fenced<'a>(lines: &mut impl Iterator<Item = (&'a str, usize)>, indent: usize) -> Option<String> {
    let mut body = String::new();
    for (line, _) in lines {
        if line.trim() == "```" {
            return Some(body);
        }
        body.extend([line.get(indent..).unwrap_or_default(), "\n"]);
    }
    None
}

fn content(language: &str, body: &str, file: Option<String>) -> Option<Content> {
    match (language, file) {
        (_, Some(file)) => Some(Content::File(file, body.to_owned())),
        ("console", None) => Some(Content::Session(session(body))),
        ("sh" | "bash" | "shell", None) => Some(Content::Script(body.to_owned())),
        _ => None,
    }
}

/// The steps of a block `console`. A command continues on the next line after a backslash and inside single quotes.
fn session(body: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in body.lines() {
        match steps.last_mut() {
            Some(step) if step.output.is_empty() && is_open(&step.command) => {
                step.command.extend(["\n", line]);
            }
            _ if line.starts_with("$ ") => {
                steps.push(Step { command: line[2..].to_owned(), output: String::new() });
            }
            Some(step) => step.output.extend([line, "\n"]),
            None => {}
        }
    }
    steps
}

fn is_open(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}

/// Whether the line is a block of commands by indentation, which has no room for a marker of its language.
fn is_indented_command(line: &str) -> bool {
    const PROGRAMS: [&str; 10] =
        ["$ ", "make ", "cargo ", "kubectl ", "helm ", "docker ", "curl ", "git ", "caipe-", "export "];
    line.strip_prefix("    ").is_some_and(|line| PROGRAMS.iter().any(|program| line.starts_with(program)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_holds_until_the_next_marker_or_heading() -> Result<()> {
        let page = "# A\n<!-- runs on: laptop -->\n```sh\none\n```\ntext\n```console\n$ two\n```\n### B\n```sh\nthree\n```\n\
                    <!-- not run: no cluster -->\n```bash\nfour\n```\n## C\n```sh\nfive\n```\n```yaml\na: 1\n```\n";
        let places: Vec<_> = blocks(page)?.into_iter().map(|block| (block.line, block.place)).collect();
        let not_run = Place::NotRun("no cluster".to_owned());
        let laptop = || Some(Place::Laptop);
        let expected = [(3, laptop()), (7, laptop()), (11, laptop()), (15, Some(not_run)), (19, None)];
        assert_eq!(places, expected);
        Ok(())
    }

    #[test]
    fn a_command_has_the_lines_that_its_quotes_and_backslashes_continue() -> Result<()> {
        let page = "  ```console\n  $ curl -d '{\n    }' \\\n    -s\n  ok\n  $ true\n  ```\n";
        let step =
            |command: &str, output: &str| Step { command: command.to_owned(), output: output.to_owned() };
        let expected = Content::Session(vec![step("curl -d '{\n  }' \\\n  -s", "ok\n"), step("true", "")]);
        assert_eq!(blocks(page)?[0].content, expected);
        Ok(())
    }

    #[test]
    fn a_file_has_the_name_of_the_comment_above_it() -> Result<()> {
        let page = "<!-- file: platform.yaml -->\n```yaml\nkind: A\n```\n```yaml\nkind: B\n```\n";
        let content: Vec<_> = blocks(page)?.into_iter().map(|block| block.content).collect();
        assert_eq!(content, [Content::File("platform.yaml".to_owned(), "kind: A\n".to_owned())]);
        Ok(())
    }

    #[test]
    fn an_indented_command_and_an_open_block_are_errors() {
        assert!(blocks("text\n\n    make run\n").is_err());
        assert!(blocks("```sh\nmake run\n").is_err());
        assert!(blocks("```sh\n    make run\n```\n").is_ok());
    }
}
