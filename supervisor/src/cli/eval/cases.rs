//! The cases of an evaluation, and their judgement. Pure.

use std::collections::BTreeSet;

use caipe_engine::name_matches;
use serde::Deserialize;

use crate::agents::Routed;

/// The cases of the program: at least 100 requests over its catalogue.
pub(super) const ROUTING: &str = include_str!("routing.yaml");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseFile {
    pub(super) cases: Vec<Case>,
}

/// A request, and what the supervisor should do with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) prompt: String,
    /// The agents that it must delegate to, and no others apart from `also`. An empty list means none.
    pub(super) agents: Vec<String>,
    /// Agents that it may delegate to.
    #[serde(default)]
    pub(super) also: Vec<String>,
    /// Patterns of the supervisor's own tools that it must call.
    #[serde(default)]
    pub(super) tools: Vec<String>,
    /// Texts that its answer or one of its tasks for agents must contain, in any case.
    #[serde(default)]
    pub(super) words: Vec<String>,
}

impl Case {
    /// What is wrong with the result, a phrase each; empty if the case passes.
    pub(super) fn faults(&self, routed: &Routed) -> Vec<String> {
        if let Some(failure) = &routed.failure {
            return vec![failure.clone()];
        }
        let used: BTreeSet<&str> = routed.delegations.iter().map(|(agent, _)| agent.as_str()).collect();
        let missing = self.agents.iter().filter(|agent| !used.contains(agent.as_str()));
        let allowed = |agent: &&&str| self.agents.iter().chain(&self.also).any(|it| it == **agent);
        let surplus = used.iter().filter(|agent| !allowed(agent));
        let is_called =
            |pattern: &&String| routed.tools.iter().any(|tool| name_matches(pattern.as_str(), tool));
        let uncalled = self.tools.iter().filter(|pattern| !is_called(pattern));
        let texts = routed.delegations.iter().map(|(_, task)| task).chain([&routed.answer]);
        let texts: Vec<String> = texts.map(|text| text.to_lowercase()).collect();
        let is_mentioned = |word: &&String| texts.iter().any(|text| text.contains(&word.to_lowercase()));
        let unmentioned = self.words.iter().filter(|word| !is_mentioned(word));
        missing
            .map(|agent| format!("not asked: {agent}"))
            .chain(surplus.map(|agent| format!("asked as well: {agent}")))
            .chain(uncalled.map(|tool| format!("not called: {tool}")))
            .chain(unmentioned.map(|word| format!("not said: {word}")))
            .collect()
    }

    /// Whether the specification has the agents of the case.
    pub(super) fn fits(&self, agents: &BTreeSet<&str>) -> bool {
        self.agents.iter().all(|agent| agents.contains(agent.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use caipe_crds::catalogue;

    use super::*;

    fn case(agents: &[&str]) -> Case {
        Case { agents: agents.iter().map(|&agent| agent.to_owned()).collect(), ..Case::default() }
    }

    fn routed(agents: &[&str]) -> Routed {
        let task = |agent: &&str| ((*agent).to_owned(), format!("Task for {agent}"));
        Routed { delegations: agents.iter().map(task).collect(), ..Routed::default() }
    }

    #[test]
    fn each_expectation_is_checked() {
        assert!(case(&["jira"]).faults(&routed(&["jira", "jira"])).is_empty());
        assert!(case(&[]).faults(&routed(&[])).is_empty());
        assert_eq!(
            case(&["jira", "argocd"]).faults(&routed(&["jira", "github"])),
            ["not asked: argocd", "asked as well: github"]
        );
        let also = Case { also: vec!["github".to_owned()], ..case(&["jira"]) };
        assert!(also.faults(&routed(&["jira", "github"])).is_empty());
        let words = Case { words: vec!["TASK FOR".to_owned(), "x".to_owned()], ..case(&["jira"]) };
        assert_eq!(words.faults(&routed(&["jira"])), ["not said: x"]);
        let tools = Case { tools: vec!["sear*".to_owned(), "fetch".to_owned()], ..case(&[]) };
        let called = Routed { tools: vec!["search".to_owned()], ..Routed::default() };
        assert_eq!(tools.faults(&called), ["not called: fetch"]);
        let failed = Routed { failure: Some("no model".to_owned()), ..Routed::default() };
        assert_eq!(case(&[]).faults(&failed), ["no model"]);
    }

    #[test]
    fn the_set_of_the_program_covers_its_catalogue() {
        let file: CaseFile = serde_saphyr::from_str(ROUTING).unwrap();
        assert!(file.cases.len() >= 100, "{}", file.cases.len());
        let prompts: BTreeSet<&str> = file.cases.iter().map(|case| case.prompt.as_str()).collect();
        assert_eq!(prompts.len(), file.cases.len(), "each prompt once");
        let known = catalogue::names();
        for case in &file.cases {
            for agent in case.agents.iter().chain(&case.also) {
                assert!(known.contains(&agent.as_str()), "{}: there is no agent {agent}", case.prompt);
            }
        }
        for agent in known {
            let count = file.cases.iter().filter(|case| case.agents.iter().any(|it| it == agent)).count();
            assert!(count >= 4, "{agent}: {count} cases");
        }
    }
}
