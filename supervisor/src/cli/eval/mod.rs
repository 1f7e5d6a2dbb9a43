//! `eval`: tries how a supervisor routes a set of requests, and compares two specifications side by side.

mod cases;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, ensure};
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};

use super::args::{Eval, Output};
use super::chat::one_line;
use super::print;
use crate::agents::{Routed, RoutingTrial};
use crate::config::{Settings, environment};
use cases::{Case, CaseFile, ROUTING};

/// The name of the cases of the program.
const OWN_CASES: &str = "routing";

/// Characters of a prompt in the list of failed cases.
const PROMPT_CHARS: usize = 80;

/// One specification and its results, in the order of the cases.
struct Trial {
    name: String,
    model: String,
    results: Vec<Routed>,
}

impl Trial {
    fn passed(&self, cases: &[Case]) -> usize {
        cases.iter().zip(&self.results).filter(|(case, routed)| case.faults(routed).is_empty()).count()
    }

    fn tokens(&self) -> u64 {
        self.results.iter().map(|routed| routed.tokens).sum()
    }

    /// The median time of a case.
    fn time(&self) -> Duration {
        let mut times: Vec<Duration> = self.results.iter().map(|routed| routed.time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }
}

/// Runs the cases. Fails if too few of them pass with the first specification.
pub(super) async fn run(args: &Eval) -> anyhow::Result<ExitCode> {
    let files = [Some(args.file.as_deref()), args.with.as_deref().map(Some)];
    let load = |file: Option<&Path>| Settings::load(file, environment()).map(|it| (label(file), it));
    let settings: Vec<(String, Settings)> =
        files.into_iter().flatten().map(load).collect::<Result<_, _>>()?;
    let cases = fitting(read(&args.cases)?, &settings)?;
    let mut trials = Vec::new();
    for (name, settings) in &settings {
        trials.push(tried(name, settings, &cases, args.parallel.into()).await?);
    }
    match args.output {
        Output::Text => print_text(&cases, &trials)?,
        Output::Json => print_json(&cases, &trials)?,
    }
    let passed = trials.first().map_or(0, |trial| trial.passed(&cases));
    let enough = passed * 100 >= cases.len() * usize::from(args.at_least);
    Ok(if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn label(file: Option<&Path>) -> String {
    file.map_or_else(|| "core agents".to_owned(), |file| file.display().to_string())
}

fn read(cases: &str) -> anyhow::Result<Vec<Case>> {
    let text = if cases == OWN_CASES {
        ROUTING.to_owned()
    } else {
        fs::read_to_string(cases).with_context(|| {
            format!("failed to read {cases}: name a file with cases, or {OWN_CASES} for those of the program")
        })?
    };
    let file: CaseFile =
        serde_saphyr::from_str(&text).with_context(|| format!("failed to read the cases of {cases}"))?;
    Ok(file.cases)
}

/// The cases whose agents every specification has; the others are reported.
fn fitting(cases: Vec<Case>, settings: &[(String, Settings)]) -> anyhow::Result<Vec<Case>> {
    let agents: Vec<BTreeSet<&str>> = settings
        .iter()
        .map(|(_, settings)| settings.spec.agents.iter().map(|agent| agent.name.as_str()).collect())
        .collect();
    let all = cases.len();
    let fitting: Vec<Case> =
        cases.into_iter().filter(|case| agents.iter().all(|agents| case.fits(agents))).collect();
    ensure!(!fitting.is_empty(), "no case is for the agents of the specification: enable their agents");
    if fitting.len() < all {
        eprintln!(
            "{} of {all} cases are left out: they need agents that are not enabled",
            all - fitting.len()
        );
    }
    Ok(fitting)
}

async fn tried(name: &str, settings: &Settings, cases: &[Case], parallel: usize) -> anyhow::Result<Trial> {
    let trial = RoutingTrial::start(settings)?;
    let ask = |case: &Case| {
        let (trial, prompt) = (&trial, case.prompt.clone());
        async move { trial.ask(&prompt).await }
    };
    let asked: Vec<_> = cases.iter().map(ask).collect();
    let results = stream::iter(asked).buffered(parallel).collect().await;
    Ok(Trial { name: name.to_owned(), model: trial.model().to_owned(), results })
}

fn print_text(cases: &[Case], trials: &[Trial]) -> anyhow::Result<()> {
    for (at, case) in cases.iter().enumerate() {
        let results: Vec<Vec<String>> =
            trials.iter().filter_map(|trial| Some(case.faults(trial.results.get(at)?))).collect();
        if results.iter().all(Vec::is_empty) {
            continue;
        }
        let prompt: String = one_line(&case.prompt).chars().take(PROMPT_CHARS).collect();
        print(format_args!("{prompt}"))?;
        for (trial, faults) in trials.iter().zip(results) {
            let verdict = if faults.is_empty() { "passes".to_owned() } else { one_line(&faults.join("; ")) };
            print(format_args!("  {}: {verdict}", trial.name))?;
        }
    }
    for trial in trials {
        print(format_args!(
            "{} ({}): {} of {} cases pass, {} tokens, median {:.1} s",
            trial.name,
            trial.model,
            trial.passed(cases),
            cases.len(),
            trial.tokens(),
            trial.time().as_secs_f64()
        ))?;
    }
    Ok(())
}

fn print_json(cases: &[Case], trials: &[Trial]) -> anyhow::Result<()> {
    for (at, case) in cases.iter().enumerate() {
        let results: Vec<Value> = trials.iter().filter_map(|trial| result(case, trial, at)).collect();
        print(json!({ "prompt": case.prompt, "agents": case.agents, "results": results }))?;
    }
    Ok(())
}

fn result(case: &Case, trial: &Trial, at: usize) -> Option<Value> {
    let routed = trial.results.get(at)?;
    let agents: Vec<&String> = routed.delegations.iter().map(|(agent, _)| agent).collect();
    Some(json!({
        "spec": trial.name,
        "model": trial.model,
        "agents": agents,
        "tools": routed.tools,
        "answer": routed.answer,
        "faults": case.faults(routed),
        "tokens": routed.tokens,
        "seconds": routed.time.as_secs_f64(),
    }))
}
