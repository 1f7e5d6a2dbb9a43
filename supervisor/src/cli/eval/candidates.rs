//! The specifications that an evaluation tries, and how each of them is started.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use super::super::args::Eval;
use super::cases::{Case, KnownTools};
use crate::agents::{RoutingTrial, RunOptions, RunTrial, TrialResult};
use crate::config::{Settings, environment};

/// A specification to try.
pub(super) struct Candidate {
    /// Its file, and what replaces its model and its prompt.
    pub(super) name: String,
    pub(super) settings: Settings,
}

/// The specification of the arguments, and the one to compare with it, which differs from it only in what the arguments say.
pub(super) fn candidates(args: &Eval) -> anyhow::Result<Vec<Candidate>> {
    let first = candidate(args.file.as_deref(), args.model.as_deref(), args.prompt.as_deref())?;
    if args.with.is_none() && args.with_model.is_none() && args.with_prompt.is_none() {
        return Ok(vec![first]);
    }
    // Another resource has its own model and prompt.
    let (model, prompt) =
        if args.with.is_some() { (None, None) } else { (args.model.as_ref(), args.prompt.as_ref()) };
    let second = candidate(
        args.with.as_deref().or(args.file.as_deref()),
        args.with_model.as_ref().or(model).map(String::as_str),
        args.with_prompt.as_ref().or(prompt).map(AsRef::as_ref),
    )?;
    Ok(vec![first, second])
}

fn candidate(file: Option<&Path>, model: Option<&str>, prompt: Option<&Path>) -> anyhow::Result<Candidate> {
    let mut settings = Settings::load(file, environment())?;
    let mut name = file.map_or_else(|| "core agents".to_owned(), |file| file.display().to_string());
    if let Some(model) = model {
        name.extend([" with ", model]);
        settings.model = Some(model.to_owned());
    }
    if let Some(prompt) = prompt {
        let text = fs::read_to_string(prompt)
            .with_context(|| format!("failed to read the prompt {}", prompt.display()))?;
        name.extend([" with ", &*prompt.display().to_string()]);
        settings.spec.supervisor.system_prompt = Some(text);
    }
    Ok(Candidate { name, settings })
}

impl Candidate {
    /// The names of its agents.
    pub(super) fn agents(&self) -> BTreeSet<&str> {
        self.settings.spec.agents.iter().map(|agent| agent.name.as_str()).collect()
    }

    /// Starts the supervisor; with options, its agents too.
    pub(super) async fn start(&self, options: Option<RunOptions>) -> anyhow::Result<Started> {
        Ok(match options {
            Some(options) => Started::Runs(RunTrial::start(&self.settings, options).await?),
            None => Started::Routing(Box::new(RoutingTrial::start(&self.settings).await?)),
        })
    }
}

/// A specification whose supervisor answers.
pub(super) enum Started {
    /// No agent works.
    Routing(Box<RoutingTrial>),
    Runs(RunTrial),
}

impl Started {
    pub(super) fn model(&self) -> String {
        match self {
            Self::Routing(trial) => trial.model().to_owned(),
            Self::Runs(trial) => trial.model(),
        }
    }

    pub(super) async fn ask(&self, case: &Case) -> TrialResult {
        match self {
            Self::Routing(trial) => trial.ask(&case.prompts).await,
            Self::Runs(trial) => trial.ask(&case.prompts).await,
        }
    }

    /// The tools that the cases can demand.
    pub(super) fn known_tools(&self) -> KnownTools {
        match self {
            Self::Routing(trial) => BTreeMap::from([(String::new(), Some(trial.offered()))]),
            Self::Runs(trial) => trial.offered(),
        }
    }

    /// Why an agent may have fewer tools than it should.
    pub(super) fn faults(&self, agent: &str) -> Vec<String> {
        match self {
            Self::Routing(_) => Vec::new(),
            Self::Runs(trial) => trial.faults(agent),
        }
    }

    pub(super) async fn shutdown(&self) {
        if let Self::Runs(trial) = self {
            trial.shutdown().await;
        }
    }
}
