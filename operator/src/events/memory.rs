//! What was said already. Pure.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::reason::{Reason, Topic};
use crate::supervisor::key::Key;

/// What an event is about within a resource: an agent, a Secret, an object; nothing for the resource itself.
pub(super) type About = String;

/// Subjects of one resource that are remembered: far more than it has agents and references. Past that, one is said twice
/// rather than kept for ever.
const SUBJECTS: usize = 4096;

/// What is said. Of the words themselves their hash is enough to know them again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) reason: Reason,
    note: u64,
    /// The generation of the resource: the same fault of another spec is another fault.
    generation: Option<i64>,
}

impl Word {
    pub(super) fn new(reason: Reason, note: &str, generation: Option<i64>) -> Self {
        let mut hasher = DefaultHasher::new();
        note.hash(&mut hasher);
        Self { reason, note: hasher.finish(), generation }
    }
}

/// The last word by resource, topic and subject.
#[derive(Debug, Default)]
pub(super) struct Memory {
    said: HashMap<Key, HashMap<(Topic, About), Word>>,
}

impl Memory {
    /// Whether this is news: it is remembered then.
    pub(super) fn is_news(&mut self, key: &Key, about: &str, word: Word) -> bool {
        let said = self.said.entry(key.clone()).or_default();
        let subject = (word.reason.topic(), about.to_owned());
        if said.get(&subject) == Some(&word) {
            return false;
        }
        if said.len() >= SUBJECTS {
            said.clear();
        }
        said.insert(subject, word);
        true
    }

    /// It is over: when it happens again, it is news again. Says whether it was the last word.
    pub(super) fn over(&mut self, key: &Key, reason: Reason, about: &str) -> bool {
        let subject = (reason.topic(), about.to_owned());
        let Some(said) = self.said.get_mut(key) else { return false };
        let is_last = said.get(&subject).is_some_and(|word| word.reason == reason);
        is_last && said.remove(&subject).is_some()
    }

    /// The resource is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.said.remove(key);
    }

    /// Somebody else tells from now on.
    pub(super) fn forget_all(&mut self) {
        self.said.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(reason: Reason, note: &str) -> Word {
        Word::new(reason, note, Some(1))
    }

    #[test]
    fn the_same_is_said_once_until_it_is_over() {
        let (mut memory, key) = (Memory::default(), Key::new("team", "platform"));
        let (down, moved) = (Reason::AgentUnreachable, Reason::AgentMoved);
        assert!(memory.is_news(&key, "argocd", word(down, "no answer")));
        assert!(!memory.is_news(&key, "argocd", word(down, "no answer")), "nothing changed");
        assert!(memory.is_news(&key, "jira", word(down, "no answer")), "another agent");
        assert!(memory.is_news(&key, "argocd", word(moved, "no answer")), "another topic");
        assert!(memory.is_news(&key, "argocd", word(down, "refused")), "another cause");
        let other = Key::new("team", "other");
        assert!(memory.is_news(&other, "argocd", word(down, "refused")), "another resource");
        assert!(!memory.over(&key, Reason::AgentDegraded, "argocd"), "that was not said");
        assert!(memory.over(&key, down, "argocd"));
        assert!(!memory.over(&key, down, "argocd"), "it was over already");
        assert!(memory.is_news(&key, "argocd", word(down, "refused")), "it happened again");
        memory.forget(&key);
        assert!(memory.is_news(&key, "jira", word(down, "no answer")), "another resource of the same name");
        memory.forget_all();
        assert!(memory.is_news(&other, "argocd", word(down, "refused")));
    }

    #[test]
    fn what_comes_and_goes_is_news_each_time() {
        let key = Key::new("team", "platform");
        for turns in [
            [Reason::AgentUnreachable, Reason::AgentRecovered],
            [Reason::AgentDegraded, Reason::AgentUnreachable],
            [Reason::ReferenceMissing, Reason::ReferenceFound],
            [Reason::RolloutStarted, Reason::RolloutFinished],
            [Reason::InvalidSpec, Reason::RolloutStarted],
        ] {
            let mut memory = Memory::default();
            for reason in turns.into_iter().cycle().take(6) {
                assert!(memory.is_news(&key, "argocd", word(reason, "the same words")), "{reason}");
            }
        }
    }

    #[test]
    fn the_same_fault_of_another_spec_is_news() {
        let (mut memory, key) = (Memory::default(), Key::new("team", "platform"));
        for generation in 1..4 {
            let word = Word { generation: Some(generation), ..word(Reason::InvalidSpec, "agents[0]: no") };
            assert!(memory.is_news(&key, "", word));
            assert!(!memory.is_news(&key, "", word));
        }
    }

    #[test]
    fn no_resource_is_remembered_without_bounds() {
        let (mut memory, key) = (Memory::default(), Key::new("team", "platform"));
        for number in 0..=SUBJECTS {
            memory.is_news(&key, &number.to_string(), word(Reason::ForeignObject, ""));
        }
        assert!(memory.said.values().map(HashMap::len).sum::<usize>() <= SUBJECTS);
    }
}
