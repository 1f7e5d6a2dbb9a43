//! Remembers published events, so that the same event is published once. Pure.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::reason::{Reason, Topic};
use crate::compact_map::CompactMap;
use crate::key::Key;

/// An agent, a Secret or an object; empty for the resource itself.
pub(super) type Subject = Box<str>;

/// Maximum number of subjects per resource. Beyond it, an event may be published twice.
const SUBJECTS: usize = 4096;

/// Identifies an event. The note is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) reason: Reason,
    note: u64,
    /// The generation of the resource: a fault of another generation is another fault.
    generation: Option<i64>,
}

impl Fingerprint {
    pub(super) fn new(reason: Reason, note: &str, generation: Option<i64>) -> Self {
        let mut hasher = DefaultHasher::new();
        note.hash(&mut hasher);
        Self { reason, note: hasher.finish(), generation }
    }
}

/// The last published event by resource, topic and subject.
#[derive(Debug, Default)]
pub(super) struct Deduplicator {
    published: HashMap<Key, CompactMap<(Topic, Subject), Fingerprint>>,
}

impl Deduplicator {
    /// Whether the event differs from the last one of its topic and subject. Remembers it.
    pub(super) fn is_new(&mut self, key: &Key, about: &str, fingerprint: Fingerprint) -> bool {
        let published = self.published.entry(key.clone()).or_default();
        let subject = (fingerprint.reason.topic(), about.into());
        if published.get(&subject) == Some(&fingerprint) {
            return false;
        }
        if published.len() >= SUBJECTS {
            *published = CompactMap::default();
        }
        published.insert(subject, fingerprint);
        true
    }

    /// Forgets an event, so that its next occurrence is new. Returns whether it was the last one of its topic and
    /// subject.
    pub(super) fn clear(&mut self, key: &Key, reason: Reason, about: &str) -> bool {
        let subject = (reason.topic(), about.into());
        let Some(published) = self.published.get_mut(key) else { return false };
        let is_last = published.get(&subject).is_some_and(|fingerprint| fingerprint.reason == reason);
        is_last && published.remove(&subject).is_some()
    }

    pub(super) fn forget(&mut self, key: &Key) {
        self.published.remove(key);
    }

    pub(super) fn forget_all(&mut self) {
        self.published.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(reason: Reason, note: &str) -> Fingerprint {
        Fingerprint::new(reason, note, Some(1))
    }

    #[test]
    fn an_event_is_new_once_until_it_is_cleared() {
        let (mut deduplicator, key) = (Deduplicator::default(), Key::new("team", "platform"));
        let (down, moved) = (Reason::AgentUnreachable, Reason::AgentMoved);
        assert!(deduplicator.is_new(&key, "argocd", fingerprint(down, "no answer")));
        assert!(!deduplicator.is_new(&key, "argocd", fingerprint(down, "no answer")), "nothing changed");
        assert!(deduplicator.is_new(&key, "jira", fingerprint(down, "no answer")), "another agent");
        assert!(deduplicator.is_new(&key, "argocd", fingerprint(moved, "no answer")), "another topic");
        assert!(deduplicator.is_new(&key, "argocd", fingerprint(down, "refused")), "another cause");
        let other = Key::new("team", "other");
        assert!(deduplicator.is_new(&other, "argocd", fingerprint(down, "refused")), "another resource");
        assert!(!deduplicator.clear(&key, Reason::AgentDegraded, "argocd"), "that was not said");
        assert!(deduplicator.clear(&key, down, "argocd"));
        assert!(!deduplicator.clear(&key, down, "argocd"), "it was over already");
        assert!(deduplicator.is_new(&key, "argocd", fingerprint(down, "refused")), "it happened again");
        deduplicator.forget(&key);
        assert!(
            deduplicator.is_new(&key, "jira", fingerprint(down, "no answer")),
            "another resource of the same name"
        );
        deduplicator.forget_all();
        assert!(deduplicator.is_new(&other, "argocd", fingerprint(down, "refused")));
    }

    #[test]
    fn alternating_events_are_new_each_time() {
        let key = Key::new("team", "platform");
        for turns in [
            [Reason::AgentUnreachable, Reason::AgentRecovered],
            [Reason::AgentDegraded, Reason::AgentUnreachable],
            [Reason::ReferenceMissing, Reason::ReferenceFound],
            [Reason::RolloutStarted, Reason::RolloutFinished],
            [Reason::InvalidSpec, Reason::RolloutStarted],
        ] {
            let mut deduplicator = Deduplicator::default();
            for reason in turns.into_iter().cycle().take(6) {
                assert!(
                    deduplicator.is_new(&key, "argocd", fingerprint(reason, "the same words")),
                    "{reason}"
                );
            }
        }
    }

    #[test]
    fn the_same_fault_of_another_generation_is_new() {
        let (mut deduplicator, key) = (Deduplicator::default(), Key::new("team", "platform"));
        for generation in 1..4 {
            let fingerprint = Fingerprint {
                generation: Some(generation),
                ..fingerprint(Reason::InvalidSpec, "agents[0]: no")
            };
            assert!(deduplicator.is_new(&key, "", fingerprint));
            assert!(!deduplicator.is_new(&key, "", fingerprint));
        }
    }

    #[test]
    fn subjects_are_bounded() {
        let (mut deduplicator, key) = (Deduplicator::default(), Key::new("team", "platform"));
        for number in 0..=SUBJECTS {
            deduplicator.is_new(&key, &number.to_string(), fingerprint(Reason::ForeignObject, ""));
        }
        assert!(deduplicator.published.values().map(CompactMap::len).sum::<usize>() <= SUBJECTS);
    }
}
