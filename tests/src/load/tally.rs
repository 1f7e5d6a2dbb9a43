//! What came of all questions.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::{LoadClients, noted};
use crate::supervisor::until;

/// What came of all questions.
#[derive(Debug, Default)]
pub struct Tally {
    /// Jobs that were done, as the answer says.
    pub done: Vec<usize>,
    /// Jobs whose agent failed, with what the answer says instead.
    pub other_answers: BTreeMap<usize, String>,
    /// Jobs that were not answered as they should be: broken rules, a task that failed, silence.
    pub failed: BTreeMap<usize, String>,
    /// Jobs that were cut off before the first event, so that nobody knows whether they were begun.
    pub unsure: Vec<usize>,
    /// How often a stream was cut and gone on with.
    pub resumed: usize,
    /// How often nobody could be reached, and the same was tried again: by what was said then.
    pub retried: BTreeMap<String, usize>,
    /// The longest that anybody waited for a whole answer.
    pub longest: Duration,
    /// The longest silence within an answer, cuts included.
    pub gap: Duration,
}

impl Tally {
    /// What the answers said instead, and how many said so.
    pub fn reasons(&self) -> BTreeMap<&str, usize> {
        let mut reasons = BTreeMap::new();
        for answer in self.other_answers.values().chain(self.failed.values()) {
            *reasons.entry(answer.as_str()).or_default() += 1;
        }
        reasons
    }

    /// Every answer was right; none was cut off.
    pub fn undisturbed(&self) -> Result<()> {
        self.answered()?;
        ensure!(self.unsure.is_empty(), "cut off before the first event: {:?}", self.unsure);
        ensure!(self.resumed == 0, "{} streams were cut", self.resumed);
        ensure!(self.retried.is_empty(), "connections were refused: {:#?}", self.retried);
        Ok(())
    }

    /// Every answer that was begun came to its end and was right, however often it was cut off.
    pub fn answered(&self) -> Result<()> {
        let wrong = self.other_answers.len() + self.failed.len();
        ensure!(wrong == 0, "{wrong} jobs failed: {:#?}", self.reasons());
        ensure!(!self.done.is_empty(), "nothing was done at all");
        Ok(())
    }

    /// The same, except that at most `most` answers may report a failure, each in some of these words.
    pub fn answered_or_says(&self, words: &[&str], most: usize) -> Result<()> {
        ensure!(self.failed.is_empty(), "jobs failed: {:#?}", self.failed);
        let reports = |answer: &&String| words.iter().any(|words| answer.contains(words));
        let others: Vec<_> = self.other_answers.values().filter(|answer| !reports(answer)).collect();
        ensure!(others.is_empty(), "answers that report something else: {others:#?}");
        let failures = self.other_answers.len();
        ensure!(
            failures <= most,
            "{failures} answers report a failure, more than {most}: {:#?}",
            self.reasons()
        );
        ensure!(!self.done.is_empty(), "nothing was done at all");
        Ok(())
    }

    /// What was noted fits what the answers say: nothing twice, and all that was done.
    pub fn fits<'a>(&self, notes: impl IntoIterator<Item = &'a str>) -> Result<()> {
        let mut lines: Vec<&str> = notes.into_iter().collect();
        lines.sort_unstable();
        let twice: Vec<_> = lines.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        ensure!(twice.is_empty(), "tool calls that ran twice: {twice:?}");
        self.is_noted(&lines)
    }

    /// All that was done was noted, perhaps more than once.
    pub fn is_noted(&self, lines: &[&str]) -> Result<()> {
        for job in &self.done {
            let job = noted(*job);
            ensure!(lines.iter().any(|line| line.ends_with(&job)), "said to be done, and was not: {job}");
        }
        Ok(())
    }

    pub(super) fn add(&mut self, other: Self) {
        self.done.extend(other.done);
        self.other_answers.extend(other.other_answers);
        self.failed.extend(other.failed);
        self.unsure.extend(other.unsure);
        self.resumed += other.resumed;
        for (reason, count) in other.retried {
            *self.retried.entry(reason).or_default() += count;
        }
        self.longest = self.longest.max(other.longest);
        self.gap = self.gap.max(other.gap);
    }
}

/// Waits until the clients have had so many more answers, so that all of them are active.
pub async fn wait_until_all_ask(clients: &LoadClients, more: usize) -> Result<()> {
    let wanted = clients.answered() + more;
    let asked = until("the clients have their answers", async || Ok(clients.answered() >= wanted)).await;
    asked.with_context(|| format!("{} of {wanted}", clients.answered()))
}
