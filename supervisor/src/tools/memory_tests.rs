use std::sync::Weak;

use caipe_store::MemoryStore;
use tokio::sync::mpsc;

use super::*;
use crate::delegation::RunInfo;
use crate::memory::FactOwners;

/// A task is named as its person.
#[derive(Debug)]
struct Owners;

#[async_trait]
impl FactOwners for Owners {
    async fn owner_of(&self, task: &str) -> Result<String, String> {
        if task == "nobody" { Err("The client names no user.".to_owned()) } else { Ok(task.to_owned()) }
    }
}

struct Fixture {
    slot: MemorySlot,
    _owners: Arc<dyn FactOwners>,
}

fn fixture() -> Fixture {
    let (owners, slot) = (Arc::new(Owners) as Arc<dyn FactOwners>, MemorySlot::default());
    slot.set(Memory::new(Arc::new(MemoryStore::new())), Arc::downgrade(&owners));
    Fixture { slot, _owners: owners }
}

impl Fixture {
    async fn call(&self, (agent, person): (&str, &str), tool: &str, arguments: Value) -> ToolOutput {
        self.with_ttl(None, (agent, person), tool, arguments).await
    }

    async fn with_ttl(
        &self,
        ttl: Option<SignedDuration>,
        (agent, person): (&str, &str),
        tool: &str,
        arguments: Value,
    ) -> ToolOutput {
        let tools = MemoryTools::new(
            agent,
            MemoryLimits { ttl, results: 3 },
            self.slot.clone(),
            ClientCalls::default(),
        );
        let run = RunInfo { task: person.into(), ..RunInfo::default() };
        let (call, files, progress) = ("c".to_owned(), Arc::default(), mpsc::channel(1).0);
        let caller = Caller { call, run, files, progress, status: None };
        tools.call(tool, arguments.as_object().unwrap().clone(), caller, CancellationToken::new()).await
    }

    async fn found(&self, who: (&str, &str), arguments: Value) -> Vec<String> {
        let output = self.call(who, SEARCH, arguments).await;
        let found: Value = serde_json::from_str(&output.content).unwrap();
        let facts = found["facts"].as_array().unwrap();
        facts.iter().map(|fact| fact["fact"].as_str().unwrap().to_owned()).collect()
    }
}

const ANN: (&str, &str) = ("jira", "ann");

#[tokio::test]
async fn a_fact_is_found_by_the_agent_that_saved_it_for_the_same_person_only() {
    let fixture = fixture();
    let saved =
        fixture.call(ANN, SAVE, json!({ "fact": "likes tea", "topic": "drinks", "owner": "bob" })).await;
    assert!(!saved.is_error && saved.content.starts_with("Saved as the fact `"), "{saved:?}");
    assert_eq!(fixture.found(ANN, json!({ "words": "drink" })).await, ["likes tea"]);
    for other in [("jira", "bob"), ("github", "ann")] {
        assert!(fixture.found(other, json!({ "owner": "ann", "user": "ann" })).await.is_empty(), "{other:?}");
    }
    let id = saved.content.split('`').nth(1).unwrap().to_owned();
    for other in [("jira", "bob"), ("github", "ann")] {
        assert!(fixture.call(other, FORGET, json!({ "id": id })).await.is_error);
    }
    assert!(!fixture.call(ANN, FORGET, json!({ "id": id })).await.is_error);
    assert!(fixture.found(ANN, json!({})).await.is_empty());
}

#[tokio::test]
async fn a_search_is_bounded_and_arguments_are_checked() {
    let fixture = fixture();
    for number in 0..5 {
        fixture.call(ANN, SAVE, json!({ "fact": format!("number {number}") })).await;
    }
    assert_eq!(fixture.found(ANN, json!({ "limit": 100 })).await.len(), 3, "at most what is configured");
    assert_eq!(fixture.found(ANN, json!({ "words": "number 1", "limit": 1 })).await, ["number 1"]);
    for (tool, arguments, expected) in [
        (SAVE, json!({}), "`fact` is missing"),
        (SAVE, json!({ "fact": 1 }), "must be text"),
        (SAVE, json!({ "fact": "x".repeat(MAX_TEXT + 1) }), "shorten it"),
        (SEARCH, json!({ "limit": 0 }), "above 0"),
        (FORGET, json!({}), "`id` is missing"),
        (FORGET, json!({ "id": "none" }), "There is no fact `none`."),
    ] {
        let refused = fixture.call(ANN, tool, arguments).await;
        assert!(refused.is_error && refused.content.contains(expected), "{refused:?}");
    }
}

#[tokio::test]
async fn nothing_is_remembered_of_nobody_or_without_a_memory() {
    let refused = fixture().call(("jira", "nobody"), SAVE, json!({ "fact": "a" })).await;
    assert!(refused.is_error && refused.content == "The client names no user.", "{refused:?}");
    let limits = MemoryLimits { ttl: None, results: 3 };
    let without = MemoryTools::new("jira", limits, MemorySlot::default(), ClientCalls::default());
    assert!(without.list().iter().all(|tool| tool.needs_client), "the client answers");
    let gone = MemorySlot::default();
    gone.set(Memory::new(Arc::new(MemoryStore::new())), Weak::<Owners>::new());
    let gone = MemoryTools::new("jira", limits, gone, ClientCalls::default());
    assert!(gone.list().iter().all(|tool| tool.needs_client));
    let (call, files, progress) = ("c".to_owned(), Arc::default(), mpsc::channel(1).0);
    let caller = Caller { call, run: RunInfo::default(), files, progress, status: None };
    let refused = gone.call(SEARCH, Map::new(), caller, CancellationToken::new()).await;
    assert!(refused.is_error && refused.content.contains("does not answer calls"), "{refused:?}");
}

#[tokio::test]
async fn a_fact_ends_with_its_term() {
    let fixture = fixture();
    let past = Some(SignedDuration::from_mins(-1));
    fixture.with_ttl(past, ANN, SAVE, json!({ "fact": "old" })).await;
    let saved =
        fixture.with_ttl(Some(SignedDuration::from_mins(5)), ANN, SAVE, json!({ "fact": "new" })).await;
    assert!(saved.content.contains("` until 20"), "{saved:?}");
    assert_eq!(fixture.found(ANN, json!({})).await, ["new"]);
}
