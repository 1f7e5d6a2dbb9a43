//! The cases of an evaluation, and what is wrong with a result. Pure.

use std::collections::{BTreeMap, BTreeSet};

use caipe_crds::catalogue;
use caipe_crds::names::normal;
use caipe_engine::name_matches;
use serde::Deserialize;

use crate::agents::{OfferedNames, TrialResult};

/// The cases of the program: at least 100 requests over its catalogue.
pub(super) const ROUTING: &str = include_str!("routing.yaml");

/// Most names of tools in an error.
const MOST_LISTED: usize = 40;

/// The tools of each agent, and under the empty name those of the supervisor itself.
pub(super) type KnownTools = BTreeMap<String, OfferedNames>;

/// Requests, and what the supervisor should do with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Case {
    /// The requests of a conversation, one after another.
    pub(super) prompts: Vec<String>,
    /// The agents that it must delegate to, and no others apart from `also`. An empty list means none; without a list, any.
    pub(super) agents: Option<Vec<String>>,
    /// Agents that it may delegate to.
    pub(super) also: Vec<String>,
    /// Patterns of tools that must be called: the supervisor's own, or `AGENT/TOOL`.
    pub(super) tools: Vec<String>,
    /// Texts that its answer must contain, in any case. Where no agent works, a task for an agent may contain them instead.
    pub(super) words: Vec<String>,
    /// What a model judges the answer by.
    pub(super) judge: Option<String>,
}

/// A case as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    prompt: Option<String>,
    #[serde(default)]
    prompts: Vec<String>,
    agents: Option<Vec<String>>,
    #[serde(default)]
    also: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    words: Vec<String>,
    judge: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    cases: Vec<WrittenCase>,
}

/// A file of cases that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CaseError {
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::Error),
    #[error("cases[{at}]: {fault}")]
    Case { at: usize, fault: String },
}

/// Reads the cases. Those of whole runs can demand more.
pub(super) fn read(text: &str, are_runs: bool) -> Result<Vec<Case>, CaseError> {
    let file: CaseFile = serde_saphyr::from_str(text)?;
    let case = |(at, case): (usize, WrittenCase)| {
        case.checked(are_runs).map_err(|fault| CaseError::Case { at, fault })
    };
    file.cases.into_iter().enumerate().map(case).collect()
}

impl WrittenCase {
    fn checked(self, are_runs: bool) -> Result<Case, String> {
        let Self { prompt, prompts, agents, also, tools, words, judge } = self;
        let prompts = match (prompt, prompts) {
            (Some(prompt), prompts) if prompts.is_empty() => vec![prompt],
            (None, prompts) if !prompts.is_empty() => prompts,
            _ => return Err("give prompt, or prompts for several requests of a conversation".to_owned()),
        };
        if agents.is_none() && tools.is_empty() && words.is_empty() && judge.is_none() {
            return Err("it demands nothing: give agents, tools, words or judge".to_owned());
        }
        if agents.is_none() && !also.is_empty() {
            return Err("also: give agents too".to_owned());
        }
        if !are_runs && judge.is_some() {
            return Err("judge: there is no answer to judge without --run".to_owned());
        }
        if let Some(tool) = tools.iter().find(|tool| !are_runs && tool.contains('/')) {
            return Err(format!("tools: no agent calls {tool} without --run"));
        }
        let agents = agents.map(|agents| agents.iter().map(|agent| normal(agent)).collect());
        let also = also.iter().map(|agent| normal(agent)).collect();
        Ok(Case { prompts, agents, also, tools, words, judge })
    }
}

impl Case {
    /// All requests, a paragraph each.
    pub(super) fn request(&self) -> String {
        self.prompts.join("\n\n")
    }

    /// What is wrong with the result of a run, or of its routing, a phrase each. The judge comes later.
    pub(super) fn faults(&self, result: &TrialResult, is_run: bool) -> Vec<String> {
        if let Some(failure) = &result.failure {
            return vec![failure.clone()];
        }
        let uncalled = self.tools.iter().filter(|pattern| !matches_any(pattern, &result.tools));
        let tasks = result.delegations.iter().map(|(_, task)| task).filter(|_| !is_run);
        let texts: Vec<String> = tasks.chain([&result.answer]).map(|text| text.to_lowercase()).collect();
        let is_mentioned = |word: &&String| texts.iter().any(|text| text.contains(&word.to_lowercase()));
        let unmentioned = self.words.iter().filter(|word| !is_mentioned(word));
        self.agent_faults(result)
            .into_iter()
            .chain(uncalled.map(|tool| format!("not called: {tool}")))
            .chain(unmentioned.map(|word| format!("not said: {word}")))
            .collect()
    }

    fn agent_faults(&self, result: &TrialResult) -> Vec<String> {
        let Some(agents) = &self.agents else { return Vec::new() };
        let used: BTreeSet<&str> = result.delegations.iter().map(|(agent, _)| agent.as_str()).collect();
        let missing = agents.iter().filter(|agent| !used.contains(agent.as_str()));
        let allowed = |agent: &&&str| agents.iter().chain(&self.also).any(|it| it == **agent);
        let surplus = used.iter().filter(|agent| !allowed(agent));
        let missing = missing.map(|agent| format!("not asked: {agent}"));
        missing.chain(surplus.map(|agent| format!("asked as well: {agent}"))).collect()
    }

    /// Whether the specification has the agents of the case.
    pub(super) fn fits(&self, agents: &BTreeSet<&str>) -> bool {
        let of_tools =
            self.tools.iter().filter_map(|tool| agent_of(tool)).filter(|agent| !agent.contains('*'));
        let demanded = self.agents.iter().flatten().map(String::as_str);
        demanded.chain(of_tools).all(|agent| agents.contains(agent))
    }

    /// The agents that neither these specifications nor the catalogue have.
    pub(super) fn unknown_agents(&self, agents: &BTreeSet<&str>) -> Vec<String> {
        let of_tools =
            self.tools.iter().filter_map(|tool| agent_of(tool)).filter(|agent| !agent.contains('*'));
        let named = self.agents.iter().flatten().chain(&self.also).map(String::as_str).chain(of_tools);
        let is_known = |agent: &&str| agents.contains(agent) || catalogue::find(agent).is_some();
        named.filter(|agent| !is_known(agent)).map(str::to_owned).collect()
    }

    /// The first pattern of a tool that no agent has, with the name of the agent and what it has. An agent in another process may
    /// have any tool.
    pub(super) fn unknown_tool(&self, known: &KnownTools) -> Option<(&str, &str, String)> {
        self.tools.iter().find_map(|pattern| {
            let (agent, tool) = parts(pattern);
            let mut of_agents = known.iter().filter(|(name, _)| name_matches(agent, name));
            let is_offered = |(_, names): (&String, &OfferedNames)| {
                names.as_ref().is_none_or(|names| names.iter().any(|name| name_matches(tool, name)))
            };
            if of_agents.clone().any(is_offered) {
                return None;
            }
            let names = of_agents.find_map(|(_, names)| names.as_ref()).into_iter().flatten();
            let names: Vec<&str> = names.take(MOST_LISTED).map(String::as_str).collect();
            Some((pattern.as_str(), agent, names.join(", ")))
        })
    }
}

/// Whether the pattern matches a called tool. A pattern without an agent matches the supervisor's own tools only.
fn matches_any(pattern: &str, called: &[String]) -> bool {
    let (agent, tool) = parts(pattern);
    called.iter().map(|called| parts(called)).any(|(by, name)| {
        agent.is_empty() == by.is_empty() && name_matches(agent, by) && name_matches(tool, name)
    })
}

/// The agent and the tool of `AGENT/TOOL`; the supervisor has no name.
fn parts(tool: &str) -> (&str, &str) {
    tool.split_once('/').unwrap_or(("", tool))
}

fn agent_of(tool: &str) -> Option<&str> {
    tool.split_once('/').map(|(agent, _)| agent)
}

#[cfg(test)]
#[path = "cases_tests.rs"]
mod tests;
