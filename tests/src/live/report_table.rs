//! The table of `docs/e2e.md`, which the tests write themselves (`CAIPE_E2E_WRITE=1`).

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::scenario_run::Outcome;
use crate::programs::workspace;

/// A table of the page, and the comment above it.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// The name in the comment `<!-- table: NAME -->`.
    pub name: &'static str,
    /// The first column of each row, in order.
    pub rows: &'static [&'static str],
}

/// What a row of a scenario says, after its name.
pub fn cells(outcome: &Outcome) -> Vec<String> {
    let tally = &outcome.tally;
    let lag = outcome
        .lag
        .longest()
        .map_or_else(|| "none".to_owned(), |(what, lasted)| format!("{}: {what}", seconds(lasted)));
    vec![
        tally.done.len().to_string(),
        (tally.other_answers.len() + tally.failed.len()).to_string(),
        tally.resumed.to_string(),
        tally.unsure.len().to_string(),
        seconds(tally.gap),
        seconds(outcome.recovered),
        lag,
    ]
}

/// A time in seconds, as people read it.
pub fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

impl Table {
    /// Prints a row, and writes it to the page if asked to.
    pub fn report(&self, row: &str, cells: &[String]) -> Result<()> {
        ensure!(self.rows.contains(&row), "the table {} has no row {row:?}", self.name);
        let line = format!("| {row} | {} |", cells.join(" | "));
        println!("{line}");
        if !writes() {
            return Ok(());
        }
        let page = page();
        let text = std::fs::read_to_string(&page).with_context(|| format!("no {}", page.display()))?;
        std::fs::write(&page, self.with(&text, row, &line)?).context("failed to write the page")
    }

    /// The rows of the page that are none of these.
    pub fn unknown(&self) -> Result<Vec<String>> {
        let text = std::fs::read_to_string(page()).context("there is no docs/e2e.md")?;
        let (_, lines, _) = parts(&text, self.name)?;
        let ours = |line: &str| self.rows.iter().any(|row| is_row(line, row));
        Ok(lines.into_iter().skip(2).filter(|line| !ours(line)).map(str::to_owned).collect())
    }

    fn with(&self, text: &str, row: &str, line: &str) -> Result<String> {
        let (before, lines, after) = parts(text, self.name)?;
        let (head, body) = lines.split_at(2.min(lines.len()));
        let mut rows: Vec<&str> = body.iter().copied().filter(|line| !is_row(line, row)).collect();
        rows.push(line);
        let place = |line: &str| self.rows.iter().position(|row| is_row(line, row)).unwrap_or(usize::MAX);
        rows.sort_by_key(|line| place(line));
        Ok(format!("{before}{}\n{}\n{after}", head.join("\n"), rows.join("\n")))
    }
}

/// Holds a whole table of the page to these lines, or writes them if the page is to be written.
pub fn holds(name: &str, rows: &[String]) -> Result<()> {
    let page = page();
    let text = std::fs::read_to_string(&page).with_context(|| format!("no {}", page.display()))?;
    let (before, lines, after) = parts(&text, name)?;
    let (head, body) = lines.split_at(2.min(lines.len()));
    if writes() {
        let text = format!("{before}{}\n{}\n{after}", head.join("\n"), rows.join("\n"));
        return std::fs::write(&page, text).context("failed to write the page");
    }
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let missing: Vec<_> = rows.iter().filter(|row| !body.contains(row)).collect();
    let gone: Vec<_> = body.iter().filter(|row| !rows.contains(row)).collect();
    ensure!(
        body == rows,
        "the page has another table {name}; gone: {gone:#?}; new: {missing:#?}; run `make e2e WRITE=1`"
    );
    Ok(())
}

/// Whether the page is to be written.
fn writes() -> bool {
    std::env::var_os("CAIPE_E2E_WRITE").is_some_and(|value| value == "1")
}

/// What is before a table of the page, its lines, what is after it.
fn parts<'a>(text: &'a str, name: &str) -> Result<(&'a str, Vec<&'a str>, &'a str)> {
    let mark = format!("<!-- table: {name} -->\n\n");
    let start = text.find(&mark).with_context(|| format!("the page has no {mark:?}"))? + mark.len();
    let (before, rest) = text.split_at(start);
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    let (table, after) = rest.split_at(end);
    Ok((before, table.lines().collect(), after))
}

fn is_row(line: &str, row: &str) -> bool {
    line.strip_prefix("| ").and_then(|line| line.strip_prefix(row)).is_some_and(|rest| rest.starts_with(" |"))
}

fn page() -> PathBuf {
    workspace().join("docs/e2e.md")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_replaces_its_like_and_stands_in_its_place() {
        let table = Table { name: "t", rows: &["a", "a b", "c"] };
        let page =
            "Text.\n\n<!-- table: t -->\n\n| what | n |\n| --- | --- |\n| c | 1 |\n| a | 2 |\n\nMore.\n";
        let page = table.with(page, "a b", "| a b | 3 |").unwrap();
        let page = table.with(&page, "a", "| a | 4 |").unwrap();
        assert_eq!(
            page,
            "Text.\n\n<!-- table: t -->\n\n| what | n |\n| --- | --- |\n| a | 4 |\n| a b | 3 |\n| c | 1 |\n\nMore.\n"
        );
        assert!(table.with("no table", "a", "").is_err());
    }
}
