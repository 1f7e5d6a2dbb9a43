//! The *should* and *may* tests that are not passed, and why. A *must* test is never listed.

use anyhow::{Result, ensure};
use caipe_tests::acts::document::Level;
use caipe_tests::acts::report::{Count, Report};

/// A test that some runs do not pass.
pub(crate) struct Known {
    pub(crate) test: &'static str,
    pub(crate) runs: &'static [&'static str],
    /// Why.
    pub(crate) reason: &'static str,
}

/// All of them.
pub(crate) const FAILURES: &[Known] = &[
    Known {
        test: "CORE-ERR-007",
        runs: &["A", "A+", "C"],
        reason: "should; wants `error.data` to be an object; 1.0.1 has an array of objects, which CORE-ERR-008 (must) wants too",
    },
    Known {
        test: "REST-PD-001",
        runs: &["C"],
        reason: "should; wants problem details (`type`, `title`, `status`); 1.0.1 has `{\"error\": {code, status, message, details}}`",
    },
    Known {
        test: "SEC-AUTH-006",
        runs: &["C"],
        reason: "should; wants `title` or `error` in the answer to a GET of the card, even with status 200; the card is public",
    },
];

/// The beginning of a run's row in the documentation: how many tests of each level it passes.
pub(crate) fn counts(report: &Report) -> String {
    let of = |level| {
        let Count { pass, fail, error, .. } = report.count(level);
        format!("{pass} of {}", pass + fail + error)
    };
    let [must, should, may] = [Level::Must, Level::Should, Level::May].map(of);
    format!("| {} | {must} | {should} | {may} |", report.run)
}

/// Whether the documentation's table has the same rows: `| test | runs | reason |`.
pub(crate) fn compare(text: &str) -> Result<()> {
    let section = text.split("## Tests that are not passed").nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let written: Vec<String> = rows.skip(1).map(str::to_owned).collect();
    let row = |known: &Known| format!("| {} | {} | {} |", known.test, known.runs.join(", "), known.reason);
    let known: Vec<String> = FAILURES.iter().map(row).collect();
    ensure!(written == known, "docs/conformance.md lists\n{written:#?}\nbut the test knows\n{known:#?}");
    Ok(())
}
