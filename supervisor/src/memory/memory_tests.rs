use caipe_store::MemoryStore;

use super::*;

const fn new(text: &str) -> NewFact<'_> {
    NewFact { text, topic: None, ttl: None }
}

fn memory() -> Memory {
    Memory::new(Arc::new(MemoryStore::new()))
}

#[tokio::test]
async fn the_same_text_is_one_fact() {
    let memory = memory();
    let first =
        memory.save("ann", "jira", NewFact { topic: Some("style"), ..new(" likes\n tea ") }).await.unwrap();
    assert_eq!((first.text.as_str(), first.expires), ("likes tea", None));
    let ttl = Some(SignedDuration::from_mins(5));
    let again = memory.save("ann", "jira", NewFact { ttl, ..new("likes tea") }).await.unwrap();
    assert_eq!((&again.id, again.topic.as_deref()), (&first.id, Some("style")));
    assert!(again.expires.is_some());
    let facts = memory.list("ann").await.unwrap();
    assert_eq!(facts, [again]);
    for (owner, agent) in [("ann", "github"), ("bob", "jira")] {
        assert_ne!(
            memory.save(owner, agent, new("likes tea")).await.unwrap().id,
            first.id,
            "{owner} {agent}"
        );
    }
}

#[tokio::test]
async fn nobody_finds_or_forgets_the_facts_of_another() {
    let memory = memory();
    let own = memory.save("ann", "jira", new("likes tea")).await.unwrap();
    for (owner, agent) in [("bob", "jira"), ("ann", "github"), ("", "jira")] {
        assert_eq!(memory.search((owner, agent), "tea", 9).await.unwrap(), []);
        assert!(!memory.forget(owner, Some(agent), &own.id).await.unwrap(), "{owner} {agent}");
    }
    assert!(!memory.forget("bob", None, &own.id).await.unwrap());
    assert_eq!(memory.forget_all("bob").await.unwrap(), 0);
    let found = memory.search(("ann", "jira"), "tea", 9).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&own));
    assert!(memory.forget("ann", Some("jira"), &own.id).await.unwrap());
    assert!(!memory.forget("ann", None, &own.id).await.unwrap());
}

#[tokio::test]
async fn facts_are_bounded_in_size_and_number() {
    let memory = memory();
    memory.save("ann", "jira", new(&"ü".repeat(MAX_TEXT / 2))).await.unwrap();
    // Escaped in the store.
    memory.save("ann", "jira", new(&"\u{1}".repeat(MAX_TEXT))).await.unwrap();
    let long = memory.save("ann", "jira", new(&"x".repeat(MAX_TEXT + 1))).await.unwrap_err();
    assert!(long.to_string().contains("`fact` has 2049 bytes"), "{long}");
    let topic = "x".repeat(MAX_TOPIC + 1);
    let long = memory.save("ann", "jira", NewFact { topic: Some(&topic), ..new("a") }).await.unwrap_err();
    assert!(matches!(long, MemoryError::TooLong { argument: "topic", .. }), "{long}");
    for number in 2..MAX_FACTS {
        memory.save("ann", "jira", new(&format!("number {number}"))).await.unwrap();
    }
    let full = memory.save("ann", "jira", new("one more")).await.unwrap_err();
    assert!(matches!(full, MemoryError::Full), "{full}");
    memory.save("ann", "jira", new("number 2")).await.unwrap();
    memory.save("ann", "github", new("one more")).await.unwrap();
    memory.save("bob", "jira", new("one more")).await.unwrap();
    assert_eq!(memory.forget_all("ann").await.unwrap(), 201);
}
