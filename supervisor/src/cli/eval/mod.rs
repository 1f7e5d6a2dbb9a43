//! `eval`: tries what a supervisor does with a set of requests, and compares two specifications side by side.
//!
//! ```text
//! cases (read and checked) -> candidates (the specifications) -> agents::{RoutingTrial, RunTrial} -> judge -> report
//! ```

mod candidates;
mod cases;
mod judge;
mod report;

use std::collections::BTreeSet;
use std::fs;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow, bail, ensure};
use futures::{StreamExt as _, stream};

use super::args::{Eval, Output};
use super::chat::one_line;
use super::server::stopping;
use crate::agents::{RunOptions, judge_model};
use candidates::{Candidate, Started, candidates};
use cases::{Case, ROUTING};
use judge::{Judge, Question};
use report::{CaseResult, Trial, print_json, print_text};

/// The name of the cases of the program.
const OWN_CASES: &str = "routing";

/// The exit code of a shell after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Runs the cases. Fails if too few of them pass with the first specification.
pub(super) async fn run(args: &Eval) -> anyhow::Result<ExitCode> {
    let candidates = candidates(args)?;
    let cases = fitting(read(&args.cases, args.run)?, &candidates)?;
    let evaluation = Evaluation::new(args, &cases, &candidates)?;
    let mut trials: Vec<Trial> = candidates.iter().map(|candidate| evaluation.pending(candidate)).collect();
    let mut stop = pin!(stopping()?);
    let mut is_stopped = false;
    for (candidate, trial) in candidates.iter().zip(&mut trials) {
        let started = tokio::select! {
            started = candidate.start(evaluation.options) => started?,
            () = &mut stop => { is_stopped = true; break }
        };
        let tried = tokio::select! {
            tried = evaluation.fill(&started, trial) => tried,
            () = &mut stop => { is_stopped = true; Ok(()) }
        };
        started.shutdown().await;
        tried?;
        if is_stopped {
            break;
        }
    }
    match args.output {
        Output::Text => print_text(&cases, &trials)?,
        Output::Json => print_json(&cases, &trials)?,
    }
    if is_stopped {
        eprintln!("caipe-supervisor: stopped before all cases were run");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let passed = trials.first().map_or(0, Trial::passed);
    let enough = passed * 100 >= cases.len() * usize::from(args.at_least);
    Ok(if enough { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(cases: &str, are_runs: bool) -> anyhow::Result<Vec<Case>> {
    let text = if cases == OWN_CASES {
        ROUTING.to_owned()
    } else {
        fs::read_to_string(cases).with_context(|| {
            format!("failed to read {cases}: name a file with cases, or {OWN_CASES} for those of the program")
        })?
    };
    cases::read(&text, are_runs).with_context(|| format!("failed to read the cases of {cases}"))
}

/// The cases whose agents every specification has; the others are reported. Fails for an agent that exists nowhere.
fn fitting(cases: Vec<Case>, candidates: &[Candidate]) -> anyhow::Result<Vec<Case>> {
    let agents: Vec<BTreeSet<&str>> = candidates.iter().map(Candidate::agents).collect();
    let known: BTreeSet<&str> = agents.iter().flatten().copied().collect();
    for (at, case) in cases.iter().enumerate() {
        if let Some(agent) = case.unknown_agents(&known).first() {
            let known: Vec<&str> = known.into_iter().collect();
            bail!(
                "cases[{at}]: unknown agent \"{agent}\"; neither the specification, which has {}, nor the catalogue has it",
                known.join(", ")
            );
        }
    }
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

/// How the cases are tried.
struct Evaluation<'a> {
    cases: &'a [Case],
    parallel: usize,
    /// How runs are tried; `None` tries the routing alone.
    options: Option<RunOptions>,
    /// The judge, if a case needs one.
    judge: Option<Judge>,
}

impl<'a> Evaluation<'a> {
    fn new(args: &Eval, cases: &'a [Case], candidates: &[Candidate]) -> anyhow::Result<Self> {
        let timeout = Duration::from_secs(args.timeout.into());
        let options = args.run.then_some(RunOptions { timeout, approve: args.approve });
        let first = candidates.first().filter(|_| cases.iter().any(|case| case.judge.is_some()));
        let judge = first.map(|first| {
            let model = judge_model(&first.settings, args.judge.as_deref());
            let model = model.map_err(|error| anyhow!("failed to use the judge: {error}"))?;
            Ok::<_, anyhow::Error>(Judge { model, timeout })
        });
        Ok(Self { cases, parallel: args.parallel.into(), options, judge: judge.transpose()? })
    }

    /// The trial of a specification before its first case.
    fn pending(&self, candidate: &Candidate) -> Trial {
        let results = self.cases.iter().map(|_| None).collect();
        Trial { name: candidate.name.clone(), model: String::new(), results }
    }

    /// Tries all cases. What is done when this future is dropped stays in the trial.
    async fn fill(&self, started: &Started, trial: &mut Trial) -> anyhow::Result<()> {
        trial.model = started.model();
        self.check_tools(started, &trial.name)?;
        let tried = self
            .cases
            .iter()
            .enumerate()
            .map(|(at, case)| async move { (at, self.case(started, case).await) });
        let tried: Vec<_> = tried.collect();
        let mut tried = stream::iter(tried).buffer_unordered(self.parallel);
        while let Some((at, result)) = tried.next().await {
            if let Some(place) = trial.results.get_mut(at) {
                *place = Some(result);
            }
        }
        Ok(())
    }

    /// Fails for a tool that no agent has.
    fn check_tools(&self, started: &Started, name: &str) -> anyhow::Result<()> {
        let known = started.known_tools();
        for case in self.cases {
            let Some((tool, agent, names)) = case.unknown_tool(&known) else { continue };
            let owner = if agent.is_empty() { "the supervisor".to_owned() } else { format!("agent {agent}") };
            let faults = started.faults(agent).join("; ");
            let faults = if faults.is_empty() { faults } else { format!("; its faults: {faults}") };
            let prompt = one_line(&case.request());
            bail!("{prompt}: unknown tool \"{tool}\"; {owner} of {name} has {names}{faults}");
        }
        Ok(())
    }

    async fn case(&self, started: &Started, case: &Case) -> CaseResult {
        let result = started.ask(case).await;
        let mut faults = case.faults(&result, self.options.is_some());
        let mut verdict = None;
        if let (Some(criteria), Some(judge), None) = (&case.judge, &self.judge, &result.failure) {
            let (request, answer) = (case.request(), result.answer.as_str());
            let judged = judge.judge(Question { request: &request, criteria, answer }).await;
            if !judged.is_met {
                faults.push(format!("judge: {}", judged.reason));
            }
            verdict = Some(judged);
        }
        CaseResult { result, verdict, faults }
    }
}
