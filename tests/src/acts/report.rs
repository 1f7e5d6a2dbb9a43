//! What a run came to.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use super::document::Level;
use super::expect::Fault;

/// What a test came to.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// As expected.
    Pass,
    /// Not as expected.
    Fail {
        /// The step, or the additional check.
        step: String,
        /// Why.
        fault: Fault,
    },
    /// Left out.
    Skip(String),
    /// The runner is at fault, or the connection.
    Error(String),
}

/// The part of a test that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Depth {
    /// All that it describes.
    Whole,
    /// Its steps; it describes more.
    StepsOnly,
}

/// One test of a run.
#[derive(Debug, Clone)]
pub struct Verdict {
    pub suite: String,
    /// The test.
    pub id: String,
    pub name: String,
    pub level: Level,
    /// What it came to.
    pub outcome: Outcome,
    /// The part of the test that was checked.
    pub depth: Depth,
    /// How long it took, in milliseconds.
    pub duration_ms: u128,
}

/// A run.
#[derive(Debug, Clone)]
pub struct Report {
    pub run: String,
    /// Its tests, in the order of the files.
    pub verdicts: Vec<Verdict>,
}

/// How many tests of a level there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Passed.
    pub pass: usize,
    /// Failed.
    pub fail: usize,
    /// Left out.
    pub skip: usize,
    /// Broke.
    pub error: usize,
}

impl Verdict {
    /// The word for its outcome.
    pub const fn word(&self) -> &'static str {
        match self.outcome {
            Outcome::Pass => "pass",
            Outcome::Fail { .. } => "fail",
            Outcome::Skip(_) => "skip",
            Outcome::Error(_) => "error",
        }
    }

    /// Why it was not passed; empty if it was.
    pub fn why(&self) -> String {
        match &self.outcome {
            Outcome::Pass => String::new(),
            Outcome::Fail { step, fault } => format!("{step}: {}", fault.message),
            Outcome::Skip(reason) | Outcome::Error(reason) => reason.clone(),
        }
    }

    fn json(&self) -> Value {
        let mut json = json!({"id": self.id, "name": self.name, "level": self.level, "result": self.word(),
            "depth": self.depth, "duration_ms": self.duration_ms});
        match &self.outcome {
            Outcome::Pass => {}
            Outcome::Skip(reason) => json["skip_reason"] = json!(reason),
            Outcome::Error(reason) => json["failure"] = json!({"message": reason}),
            Outcome::Fail { step, fault } => {
                json["failure"] = json!({"message": fault.message, "step_id": step});
                if let Some(mismatch) = &fault.mismatch {
                    json["failure"]["expected"] = json!(mismatch.expected);
                    json["failure"]["actual"] = json!(mismatch.actual);
                    json["failure"]["assertion_path"] = json!(mismatch.path);
                }
            }
        }
        json
    }
}

impl Report {
    /// How many tests of `level` there were.
    pub fn count(&self, level: Level) -> Count {
        let mut count = Count::default();
        for verdict in self.verdicts.iter().filter(|verdict| verdict.level == level) {
            match verdict.outcome {
                Outcome::Pass => count.pass += 1,
                Outcome::Fail { .. } => count.fail += 1,
                Outcome::Skip(_) => count.skip += 1,
                Outcome::Error(_) => count.error += 1,
            }
        }
        count
    }

    /// The report of the format document: totals, then suites, then tests.
    pub fn json(&self) -> Value {
        let mut suites: Vec<(String, Vec<Value>)> = Vec::new();
        for verdict in &self.verdicts {
            match suites.last_mut().filter(|(id, _)| *id == verdict.suite) {
                Some((_, tests)) => tests.push(verdict.json()),
                None => suites.push((verdict.suite.clone(), vec![verdict.json()])),
            }
        }
        let suites: Vec<_> =
            suites.into_iter().map(|(id, tests)| json!({"id": id, "tests": tests})).collect();
        let of = |level| json!(self.count(level));
        let totals = json!({"must": of(Level::Must), "should": of(Level::Should), "may": of(Level::May)});
        json!({"run": self.run, "totals": totals, "suites": suites})
    }

    /// The report for people.
    pub fn table(&self) -> String {
        let mut table = format!("run {}\n", self.run);
        for verdict in &self.verdicts {
            if let Outcome::Skip(_) = verdict.outcome {
                continue;
            }
            let depth = if verdict.depth == Depth::StepsOnly { " (steps only)" } else { "" };
            let Verdict { id, level, duration_ms, .. } = verdict;
            let level = format!("{level:?}").to_lowercase();
            let _infallible = writeln!(
                table,
                "  {:<5} {level:<6} {id:<18} {duration_ms:>6} ms{depth} {}",
                verdict.word(),
                verdict.why()
            );
        }
        for level in [Level::Must, Level::Should, Level::May] {
            let Count { pass, fail, skip, error } = self.count(level);
            let level = format!("{level:?}").to_lowercase();
            let _infallible =
                writeln!(table, "  {level:<6} {pass} passed, {fail} failed, {error} broke, {skip} left out");
        }
        table
    }
}
