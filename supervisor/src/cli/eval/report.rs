//! What an evaluation prints.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::chat::one_line;
use super::super::print;
use super::cases::Case;
use super::judge::Verdict;
use crate::agents::TrialResult;

/// Characters of a request in the list of failed cases.
const PROMPT_CHARS: usize = 80;

/// One specification and its results.
pub(super) struct Trial {
    pub(super) name: String,
    pub(super) model: String,
    /// In the order of the cases; `None` for one that was not run.
    pub(super) results: Vec<Option<CaseResult>>,
}

/// What became of a case.
pub(super) struct CaseResult {
    pub(super) result: TrialResult,
    pub(super) verdict: Option<Verdict>,
    /// What is wrong, a phrase each; empty if the case passes.
    pub(super) faults: Vec<String>,
}

impl Trial {
    fn done(&self) -> impl Iterator<Item = &CaseResult> {
        self.results.iter().flatten()
    }

    pub(super) fn passed(&self) -> usize {
        self.done().filter(|result| result.faults.is_empty()).count()
    }

    fn tokens(&self) -> u64 {
        self.done().map(|result| result.result.tokens).sum()
    }

    /// The median time of a case.
    fn time(&self) -> Duration {
        let mut times: Vec<Duration> = self.done().map(|result| result.result.time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    fn at(&self, case: usize) -> Option<&CaseResult> {
        self.results.get(case)?.as_ref()
    }
}

/// Prints each case that fails, and the sums.
pub(super) fn print_text(cases: &[Case], trials: &[Trial]) -> anyhow::Result<()> {
    for (at, case) in cases.iter().enumerate() {
        let results = || trials.iter().filter_map(|trial| Some((trial, trial.at(at)?)));
        if results().all(|(_, result)| result.faults.is_empty()) {
            continue;
        }
        let prompt: String = one_line(&case.request()).chars().take(PROMPT_CHARS).collect();
        print(format_args!("{prompt}"))?;
        for (trial, result) in results() {
            print_result(&trial.name, result)?;
        }
    }
    for trial in trials {
        print(format_args!(
            "{} ({}): {} of {} cases pass, {} tokens, median {:.1} s",
            trial.name,
            trial.model,
            trial.passed(),
            trial.done().count(),
            trial.tokens(),
            trial.time().as_secs_f64()
        ))?;
    }
    Ok(())
}

fn print_result(name: &str, CaseResult { result, faults, .. }: &CaseResult) -> anyhow::Result<()> {
    let verdict = if faults.is_empty() { "passes".to_owned() } else { one_line(&faults.join("; ")) };
    let (tokens, seconds) = (result.tokens, result.time.as_secs_f64());
    print(format_args!("  {name}: {verdict} ({tokens} tokens, {seconds:.1} s)"))?;
    for note in &result.notes {
        print(format_args!("    {}", one_line(note)))?;
    }
    Ok(())
}

/// Prints one object for each case with a result.
pub(super) fn print_json(cases: &[Case], trials: &[Trial]) -> anyhow::Result<()> {
    for (at, case) in cases.iter().enumerate() {
        let results: Vec<Value> =
            trials.iter().filter_map(|trial| Some(json_of(trial, trial.at(at)?))).collect();
        if !results.is_empty() {
            let Case { prompts, agents, also, tools, words, judge } = case;
            print(json!({
                "prompts": prompts, "agents": agents, "also": also, "tools": tools, "words": words, "judge": judge,
                "results": results,
            }))?;
        }
    }
    Ok(())
}

fn json_of(trial: &Trial, CaseResult { result, verdict, faults }: &CaseResult) -> Value {
    let agents: Vec<&String> = result.delegations.iter().map(|(agent, _)| agent).collect();
    let tasks: Vec<&String> = result.delegations.iter().map(|(_, task)| task).collect();
    json!({
        "spec": trial.name,
        "model": trial.model,
        "agents": agents,
        "tasks": tasks,
        "tools": result.tools,
        "answer": result.answer,
        "notes": result.notes,
        "faults": faults,
        "judge": verdict,
        "tokens": result.tokens,
        "seconds": result.time.as_secs_f64(),
    })
}
