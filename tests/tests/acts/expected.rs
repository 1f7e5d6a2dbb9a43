//! The *should* and *may* tests that are not passed, and why. A *must* test is never listed.

use anyhow::{Result, ensure};

/// A test that a run does not pass.
pub(crate) struct Known {
    /// The test.
    pub(crate) test: &'static str,
    /// The run.
    pub(crate) run: &'static str,
    /// Why.
    pub(crate) reason: &'static str,
}

/// All of them.
pub(crate) const FAILURES: &[Known] = &[];

/// Whether the documentation's table of failures has the same rows: `| test | run | reason |`.
pub(crate) fn compare(text: &str) -> Result<()> {
    let section = text.split("## Tests that are not passed").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
    let written: Vec<String> = rows.map(str::to_owned).collect();
    let known: Vec<String> = FAILURES
        .iter()
        .map(|known| format!("| {} | {} | {} |", known.test, known.run, known.reason))
        .collect();
    ensure!(written == known, "docs/conformance.md lists\n{written:#?}\nbut the test knows\n{known:#?}");
    Ok(())
}
