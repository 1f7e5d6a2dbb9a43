//! Each state of an agent against each wanted spec, and when an agent migrates.

use std::collections::BTreeMap;

use caipe_crds::RenderedSpec;
use caipe_crds::rendered::Placement;
use caipe_crds::resource::agent_state::AgentPhase::{self, Degraded, Draining, Pending, Ready, Unreachable};
use caipe_engine::AgentName;
use proptest::prelude::*;

use super::{ExistingSpecs, InstanceSpec, PlanAction, migrates, plan};
use crate::config::Scripts;

fn spec() -> RenderedSpec {
    caipe_crds::resolve(&caipe_crds::default_resource(), &BTreeMap::new()).unwrap().spec
}

/// A spec of Jira by a letter: `l` in this process, `m` with another prompt, `t` with other tools, `r` and `s` at two
/// addresses, `R` at the first one with another title.
fn jira(letter: char) -> InstanceSpec {
    let spec = spec();
    let mut agent = spec.agent("jira").unwrap().clone();
    let at = |url: &str| Placement::Remote { url: url.to_owned(), headers: BTreeMap::new() };
    match letter {
        'l' => {}
        'm' => agent.system_prompt.push('!'),
        't' => agent.tools.push("get_*".to_owned()),
        'r' => agent.placement = at("http://r"),
        'R' => (agent.placement, agent.title) = (at("http://r"), "JIRA".to_owned()),
        's' => agent.placement = at("http://s"),
        other => panic!("no spec {other}"),
    }
    InstanceSpec::new(&spec, &agent, &Scripts::default())
}

fn decided(current: Option<char>, next: Option<char>, wanted: Option<char>) -> Vec<PlanAction> {
    let (current, next) = (current.map(jira), next.map(jira));
    let existing = ExistingSpecs { current: current.as_ref(), next: next.as_ref() };
    let exists = current.is_some() || next.is_some();
    let existing: BTreeMap<_, _> = exists.then(|| (AgentName::new("jira"), existing)).into_iter().collect();
    let wanted: Vec<_> = wanted.map(jira).into_iter().collect();
    plan(&existing, &wanted).into_iter().map(|(_, action)| action).collect()
}

#[test]
fn each_state_and_each_wanted_spec() {
    let cases = [
        // A new agent, at either placement.
        (None, None, Some('l'), vec![PlanAction::Prepare]),
        (None, None, Some('r'), vec![PlanAction::Prepare]),
        // Nothing new.
        (Some('l'), None, Some('l'), vec![PlanAction::Keep]),
        (Some('r'), None, Some('r'), vec![PlanAction::Keep]),
        // To remote, back, and from one address to another.
        (Some('l'), None, Some('r'), vec![PlanAction::Prepare]),
        (Some('r'), None, Some('l'), vec![PlanAction::Prepare]),
        (Some('r'), None, Some('s'), vec![PlanAction::Prepare]),
        // Migrating already, and back before it is done.
        (Some('l'), Some('r'), Some('r'), vec![PlanAction::Wait]),
        (Some('l'), Some('r'), Some('l'), vec![PlanAction::Keep]),
        (Some('l'), Some('r'), Some('s'), vec![PlanAction::Prepare]),
        (None, Some('l'), Some('l'), vec![PlanAction::Wait]),
        // Prompts change at once, tools and addresses only when they are ready.
        (Some('l'), None, Some('m'), vec![PlanAction::Replace]),
        (Some('r'), None, Some('R'), vec![PlanAction::Replace]),
        (Some('l'), Some('r'), Some('m'), vec![PlanAction::Replace]),
        (Some('l'), None, Some('t'), vec![PlanAction::Prepare]),
        // Gone.
        (Some('l'), None, None, vec![PlanAction::Remove]),
        (Some('l'), Some('r'), None, vec![PlanAction::Remove]),
        (None, Some('r'), None, vec![PlanAction::Remove]),
        (None, None, None, vec![]),
    ];
    for (current, next, wanted, expected) in cases {
        assert_eq!(decided(current, next, wanted), expected, "{current:?} {next:?} {wanted:?}");
    }
}

#[test]
fn general_settings_change_only_the_agents_that_use_them() {
    let (old, mut new) = (spec(), spec());
    new.limits.recursion += 1;
    new.supervisor.name.push('!');
    let instance = |spec: &RenderedSpec, letter| {
        let InstanceSpec { agent, .. } = jira(letter);
        InstanceSpec::new(spec, &agent, &Scripts::default())
    };
    assert_ne!(instance(&old, 'l'), instance(&new, 'l'), "its runs have other limits");
    assert!(instance(&old, 'l').shares_tools_with(&instance(&new, 'l')));
    assert_eq!(instance(&old, 'r'), instance(&new, 'r'), "a remote agent has limits of its own");
    new.limits.tool_timeout_ms += 1;
    assert!(!instance(&old, 'l').shares_tools_with(&instance(&new, 'l')));
}

#[test]
fn an_address_is_shown_without_credentials() {
    let mut spec = jira('r');
    spec.agent.placement =
        Placement::Remote { url: "https://me:secret@jira:8000/a2a/".to_owned(), headers: BTreeMap::new() };
    assert_eq!(spec.endpoint().as_deref(), Some("https://jira:8000/a2a"));
    assert_eq!(jira('l').endpoint(), None);
}

#[test]
fn an_agent_migrates_when_it_is_no_worse() {
    const NEVER: [Option<AgentPhase>; 0] = [];
    let all = [None, Some(Pending), Some(Ready), Some(Degraded), Some(Unreachable), Some(Draining)];
    let cases = [
        (Ready, all.to_vec()),
        (Pending, NEVER.to_vec()),
        (Draining, NEVER.to_vec()),
        (Degraded, vec![None, Some(Degraded), Some(Unreachable)]),
        (Unreachable, vec![None, Some(Unreachable)]),
    ];
    for (next, from) in cases {
        for current in all {
            assert_eq!(migrates(current, next), from.contains(&current), "{current:?} -> {next:?}");
        }
    }
}

proptest! {
    #[test]
    fn one_wanted_spec_is_reached_from_every_state(
        wanted in proptest::collection::vec(proptest::option::of(prop::sample::select(vec!['l', 'm', 't', 'r', 'R', 's'])), 1..12),
        ready in proptest::collection::vec(any::<bool>(), 12),
    ) {
        let (mut current, mut next): (Option<char>, Option<char>) = (None, None);
        for (spec, ready) in wanted.iter().zip(&ready) {
            for action in decided(current, next, *spec) {
                match action {
                    PlanAction::Keep => next = None,
                    PlanAction::Wait => {}
                    PlanAction::Replace => (current, next) = (*spec, None),
                    PlanAction::Prepare => next = *spec,
                    PlanAction::Remove => (current, next) = (None, None),
                }
            }
            if *ready && next.is_some() {
                (current, next) = (next.take(), None);
            }
            prop_assert!(current == *spec || next == *spec, "{:?} {:?} {:?}", current, next, spec);
        }
    }
}
