//! Every standing of an agent against every wish, and when it moves.

use std::collections::BTreeMap;

use caipe_crds::RenderedSpec;
use caipe_crds::rendered::Home;
use caipe_crds::resource::status::AgentPhase::{self, Degraded, Draining, Pending, Ready, Unreachable};
use caipe_engine::AgentName;
use proptest::prelude::*;

use super::{Act, Blueprint, Standing, moves, plan};
use crate::config::Scripts;

fn spec() -> RenderedSpec {
    caipe_crds::resolve(&caipe_crds::default_resource(), &BTreeMap::new()).unwrap().spec
}

/// A home of Jira that is told from others by a letter: `l` here, `m` here with another prompt, `t` here with other
/// tools, `r` and `s` at two addresses, `R` at the first one with another title.
fn jira(letter: char) -> Blueprint {
    let spec = spec();
    let mut agent = spec.agent("jira").unwrap().clone();
    let at = |url: &str| Home::Remote { url: url.to_owned(), headers: BTreeMap::new() };
    match letter {
        'l' => {}
        'm' => agent.system_prompt.push('!'),
        't' => agent.tools.push("get_*".to_owned()),
        'r' => agent.home = at("http://r"),
        'R' => (agent.home, agent.title) = (at("http://r"), "JIRA".to_owned()),
        's' => agent.home = at("http://s"),
        other => panic!("no home {other}"),
    }
    Blueprint::new(&spec, &agent, &Scripts::default())
}

fn decided(serving: Option<char>, next: Option<char>, wanted: Option<char>) -> Vec<Act> {
    let (serving, next) = (serving.map(jira), next.map(jira));
    let standing = Standing { serving: serving.as_ref(), next: next.as_ref() };
    let known = serving.is_some() || next.is_some();
    let standing: BTreeMap<_, _> = known.then(|| (AgentName::new("jira"), standing)).into_iter().collect();
    let wanted: Vec<_> = wanted.map(jira).into_iter().collect();
    plan(&standing, &wanted).into_iter().map(|(_, act)| act).collect()
}

#[test]
fn each_standing_and_each_wish() {
    let cases = [
        // A new agent, at either home.
        (None, None, Some('l'), vec![Act::Prepare]),
        (None, None, Some('r'), vec![Act::Prepare]),
        // Nothing new.
        (Some('l'), None, Some('l'), vec![Act::Keep]),
        (Some('r'), None, Some('r'), vec![Act::Keep]),
        // Out, back, and from one address to another.
        (Some('l'), None, Some('r'), vec![Act::Prepare]),
        (Some('r'), None, Some('l'), vec![Act::Prepare]),
        (Some('r'), None, Some('s'), vec![Act::Prepare]),
        // On the way already, and back before it got there.
        (Some('l'), Some('r'), Some('r'), vec![Act::Wait]),
        (Some('l'), Some('r'), Some('l'), vec![Act::Keep]),
        (Some('l'), Some('r'), Some('s'), vec![Act::Prepare]),
        (None, Some('l'), Some('l'), vec![Act::Wait]),
        // Words change at once, tools and addresses only when they are ready.
        (Some('l'), None, Some('m'), vec![Act::Refit]),
        (Some('r'), None, Some('R'), vec![Act::Refit]),
        (Some('l'), Some('r'), Some('m'), vec![Act::Refit]),
        (Some('l'), None, Some('t'), vec![Act::Prepare]),
        // Gone.
        (Some('l'), None, None, vec![Act::Remove]),
        (Some('l'), Some('r'), None, vec![Act::Remove]),
        (None, Some('r'), None, vec![Act::Remove]),
        (None, None, None, vec![]),
    ];
    for (serving, next, wanted, expected) in cases {
        assert_eq!(decided(serving, next, wanted), expected, "{serving:?} {next:?} {wanted:?}");
    }
}

#[test]
fn what_others_share_changes_only_whom_it_concerns() {
    let (old, mut new) = (spec(), spec());
    new.limits.recursion += 1;
    new.supervisor.name.push('!');
    let home = |spec: &RenderedSpec, letter| {
        let Blueprint { agent, .. } = jira(letter);
        Blueprint::new(spec, &agent, &Scripts::default())
    };
    assert_ne!(home(&old, 'l'), home(&new, 'l'), "its runs are bounded anew");
    assert!(home(&old, 'l').shares_tools_with(&home(&new, 'l')));
    assert_eq!(home(&old, 'r'), home(&new, 'r'), "a remote agent has bounds of its own");
    new.limits.tool_timeout_ms += 1;
    assert!(!home(&old, 'l').shares_tools_with(&home(&new, 'l')));
}

#[test]
fn an_address_is_shown_without_credentials() {
    let mut blueprint = jira('r');
    blueprint.agent.home =
        Home::Remote { url: "https://me:secret@jira:8000/a2a/".to_owned(), headers: BTreeMap::new() };
    assert_eq!(blueprint.endpoint().as_deref(), Some("https://jira:8000/a2a"));
    assert_eq!(jira('l').endpoint(), None);
}

#[test]
fn an_agent_moves_when_it_is_no_worse_off() {
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
        for serving in all {
            assert_eq!(moves(serving, next), from.contains(&serving), "{serving:?} -> {next:?}");
        }
    }
}

proptest! {
    #[test]
    fn whatever_came_before_one_wish_is_enough_to_get_there(
        wishes in proptest::collection::vec(proptest::option::of(prop::sample::select(vec!['l', 'm', 't', 'r', 'R', 's'])), 1..12),
        ready in proptest::collection::vec(any::<bool>(), 12),
    ) {
        let (mut serving, mut next): (Option<char>, Option<char>) = (None, None);
        for (wish, ready) in wishes.iter().zip(&ready) {
            for act in decided(serving, next, *wish) {
                match act {
                    Act::Keep => next = None,
                    Act::Wait => {}
                    Act::Refit => (serving, next) = (*wish, None),
                    Act::Prepare => next = *wish,
                    Act::Remove => (serving, next) = (None, None),
                }
            }
            if *ready && next.is_some() {
                (serving, next) = (next.take(), None);
            }
            prop_assert!(serving == *wish || next == *wish, "{:?} {:?} {:?}", serving, next, wish);
        }
    }
}
