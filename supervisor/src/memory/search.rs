//! Finds facts by words. Pure, so that every store finds the same.

use std::collections::BTreeSet;

use super::Fact;

/// The fewest characters of a word that another word may continue: `deploy` finds `deployment`.
const STEM: usize = 4;

/// The facts that have a word of the query, those with most words first, and of equal ones the newest. All facts for a query without
/// words. `facts` are the newest first.
pub(super) fn search(facts: Vec<Fact>, query: &str) -> Vec<Fact> {
    let wanted = words(query);
    if wanted.is_empty() {
        return facts;
    }
    let score = |fact: &Fact| {
        let having: BTreeSet<String> =
            words(&fact.text).into_iter().chain(words(fact.topic.as_deref().unwrap_or_default())).collect();
        wanted.iter().filter(|word| having.iter().any(|own| is_same(own, word))).count()
    };
    let mut found: Vec<(usize, Fact)> = facts.into_iter().map(|fact| (score(&fact), fact)).collect();
    found.retain(|(score, _)| *score > 0);
    // Stable, so the newest stay first.
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().map(|(_, fact)| fact).collect()
}

fn words(text: &str) -> BTreeSet<String> {
    let lower = text.to_lowercase();
    lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Whether two words are equal, or the longer one continues the shorter one.
fn is_same(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    short == long || (short.chars().count() >= STEM && long.starts_with(short))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn fact(text: &str, topic: Option<&str>) -> Fact {
        let (id, agent, topic) = (String::new(), "jira".to_owned(), topic.map(str::to_owned));
        Fact { id, agent, text: text.to_owned(), topic, saved: Timestamp::UNIX_EPOCH, expires: None }
    }

    #[test]
    fn facts_are_found_by_their_words_and_their_topic() {
        let facts = || {
            vec![
                fact("Deployments of checkout happen on Mondays", Some("releases")),
                fact("Ann prefers answers in German", None),
                fact("The cluster of Ann's team is called Größe-1", None),
            ]
        };
        let found = |query: &str| -> Vec<String> {
            let begin = |fact: Fact| fact.text.split(' ').take(2).collect::<Vec<_>>().join(" ");
            search(facts(), query).into_iter().map(begin).collect()
        };
        assert_eq!(found("deploy"), ["Deployments of"]);
        assert_eq!(found("RELEASES"), ["Deployments of"], "a topic, in any case");
        assert_eq!(found("größe"), ["The cluster"]);
        assert_eq!(found("ann cluster"), ["The cluster", "Ann prefers"], "most words first");
        assert_eq!(found("ann"), ["Ann prefers", "The cluster"], "the newest first");
        assert_eq!(found("an"), Vec::<String>::new(), "no part of a short word");
        assert_eq!(found(" ?! ").len(), 3);
    }
}
