//! Any order of commits, accepted and refused, leaves what a much simpler store would hold.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::collections::BTreeMap;
use std::path::Path;

use caipe_engine::RunState;
#[cfg(feature = "mongodb")]
use caipe_fixtures::mongodb::MongodbServer;
use caipe_fixtures::redis::RedisServer;
use caipe_store::{
    Commit, Fence, MemoryStore, RedisOptions, RedisStore, SavedConversation, SqliteStore, Store, TaskFilter,
    TaskPhase,
};
#[cfg(feature = "mongodb")]
use caipe_store::{MongodbOptions, MongodbStore};
use proptest::prelude::*;
use samples::{changed, event, logged, recorded, task};
use tempfile::TempDir;

/// One commit, by small numbers.
#[derive(Debug, Clone)]
struct Step {
    context: u8,
    task: Option<(u8, TaskPhase)>,
    conversation: Option<Turn>,
    log: Option<Log>,
}

/// What happens to the messages: all but the first few go, then others come.
#[derive(Debug, Clone)]
struct Turn {
    keep: u8,
    append: u8,
}

#[derive(Debug, Clone)]
struct Log {
    task: u8,
    count: u8,
    /// How far the number is from the right one.
    off: i8,
    /// Whether another owner takes the lease first, and whether the commit is one of the owner before.
    acquire: bool,
    late: bool,
}

#[derive(Debug, Default)]
struct Model {
    conversations: BTreeMap<String, (RunState, SavedConversation)>,
    phases: BTreeMap<String, TaskPhase>,
    logs: BTreeMap<String, Vec<u64>>,
    tokens: BTreeMap<String, u64>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let phase =
        prop_oneof![Just(TaskPhase::Working), Just(TaskPhase::Completed), Just(TaskPhase::InputRequired)];
    let off = prop_oneof![6 => Just(0_i8), 1 => -2_i8..=2];
    let log = (0_u8..3, 1_u8..5, off, prop::bool::weighted(0.2), prop::bool::weighted(0.1));
    let log = log.prop_map(|(task, count, off, acquire, late)| Log { task, count, off, acquire, late });
    let turn = (0_u8..6, 0_u8..3).prop_map(|(keep, append)| Turn { keep, append });
    let step = (0_u8..3, prop::option::of((0_u8..3, phase)), prop::option::of(turn), prop::option::of(log));
    let step = step.prop_map(|(context, task, conversation, log)| Step { context, task, conversation, log });
    prop::collection::vec(step, 1..25)
}

fn commit_of(step: &Step, number: usize, model: &Model) -> (Commit, Option<RunState>) {
    let context = format!("context-{}", step.context);
    let mut commit = Commit { context: context.clone(), ..Commit::default() };
    let mut next = None;
    if let Some(turn) = &step.conversation {
        let (mut state, saved) = match model.conversations.get(&context) {
            Some((state, _)) => (state.clone(), SavedConversation::of(state)),
            None => (RunState::new("supervisor".to_owned().into()), SavedConversation::default()),
        };
        state.messages.truncate(turn.keep.into());
        let texts = (0..turn.append).map(|index| format!("{number}.{index}"));
        state.messages.extend(texts.flat_map(|text| samples::state(&text).messages));
        commit = changed(&context, &saved, &state);
        next = Some(state);
    }
    if let Some((id, phase)) = step.task {
        commit.task =
            recorded(task(&format!("task-{id}"), &context, phase, i64::try_from(number).unwrap())).task;
    }
    if let Some(log) = &step.log {
        let id = format!("task-{}", log.task);
        let last = model.logs.get(&id).and_then(|log| log.last()).copied().unwrap_or_default();
        let first = (last + 1).saturating_add_signed(log.off.into()).max(1);
        commit.events = logged(&id, first, log.count.into()).events;
        let token = model.tokens.get(&id).copied().unwrap_or_default() + u64::from(log.late);
        commit.fence = Some(Fence { task: id, token, number: number as u64 + 1, ..Fence::default() });
    }
    (commit, next)
}

impl Model {
    fn accepts(&self, commit: &Commit) -> bool {
        let Some(fence) = &commit.fence else { return true };
        let brings = commit.task.as_ref().is_some_and(|task| task.id == fence.task);
        let last = self.logs.get(&fence.task).and_then(|log| log.last()).copied().unwrap_or_default();
        (self.phases.contains_key(&fence.task) || brings)
            && fence.token == self.tokens.get(&fence.task).copied().unwrap_or_default()
            && commit.events.iter().all(|chunk| chunk.first > last)
    }

    fn apply(&mut self, commit: &Commit, next: Option<RunState>) {
        if let Some(task) = &commit.task {
            self.phases.insert(task.id.clone(), task.phase);
        }
        if let Some(state) = next {
            let saved = SavedConversation::of(&state);
            self.conversations.insert(commit.context.clone(), (state, saved));
        }
        if let Some(fence) = &commit.fence {
            let log = self.logs.entry(fence.task.clone()).or_default();
            log.extend(commit.events.iter().flat_map(|chunk| chunk.first..=chunk.last));
        }
    }

    async fn compare(&self, store: &dyn Store) {
        for context in (0..3).map(|number| format!("context-{number}")) {
            let wanted = self.conversations.get(&context).map(|(state, _)| state.clone());
            let found = store.conversation(&context).await.unwrap();
            let found = found.map(|stored| stored.decode(&context).unwrap().0);
            assert_eq!(found, wanted, "{context}");
        }
        for id in (0..3).map(|number| format!("task-{number}")) {
            let wanted = self.logs.get(&id).into_iter().flatten();
            let wanted: Vec<_> = wanted.map(|seq| (*seq, event(&seq.to_string()))).collect();
            let found = store.events(&id, 0, usize::MAX).await.unwrap().into_iter();
            let found: Vec<_> = found.map(|logged| (logged.seq, logged.event)).collect();
            assert_eq!(found, wanted, "{id}");
            let phase = store.task(&id).await.unwrap().map(|task| task.phase);
            assert_eq!(phase.as_ref(), self.phases.get(&id), "{id}");
        }
        let all = store.tasks(&TaskFilter::default()).await.unwrap();
        assert_eq!(all.len(), self.phases.len());
        assert!(all.is_sorted_by_key(|task| std::cmp::Reverse(task.updated)));
    }

    /// Another owner takes the lease of a task.
    async fn acquire(&mut self, store: &dyn Store, id: String) {
        let outcome = store.acquire(&id, &samples::term("one")).await;
        assert_eq!(outcome.is_ok(), self.phases.contains_key(&id), "{id}: {outcome:?}");
        if let Ok(lease) = outcome {
            self.tokens.insert(id, lease.token);
        }
    }
}

async fn replay(store: &dyn Store, steps: &[Step]) -> Model {
    let mut model = Model::default();
    for (number, step) in steps.iter().enumerate() {
        if let Some(log) = step.log.as_ref().filter(|log| log.acquire) {
            model.acquire(store, format!("task-{}", log.task)).await;
        }
        let (commit, next) = commit_of(step, number, &model);
        let outcome = store.commit(commit.clone()).await;
        assert_eq!(outcome.is_ok(), model.accepts(&commit), "step {number}: {outcome:?}");
        if outcome.is_ok() {
            model.apply(&commit, next);
        }
    }
    model.compare(store).await;
    model
}

/// The files as a kill would leave them now.
fn killed(directory: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["caipe.db", "caipe.db-wal"] {
        std::fs::copy(directory.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_commits_leaves_what_it_should(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            replay(&MemoryStore::new(), &steps).await;
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("caipe.db");
            let store = SqliteStore::open(&path).unwrap();
            let model = replay(&store, &steps).await;
            let left = killed(directory.path());
            let after = SqliteStore::open(&left.path().join("caipe.db")).unwrap();
            model.compare(&after).await;
            store.close().await.unwrap();
            after.close().await.unwrap();
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn redis_holds_the_same_and_keeps_it_through_a_kill(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut server = RedisServer::start(&[]).unwrap();
            let options = RedisOptions { url: server.url(), database: "a b".into(), ..RedisOptions::default() };
            let model = replay(&RedisStore::open(&options).unwrap(), &steps).await;
            server.kill().unwrap();
            server.restart().unwrap();
            model.compare(&RedisStore::open(&options).unwrap()).await;
        });
    }
}

#[cfg(feature = "mongodb")]
proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn mongodb_holds_the_same_and_keeps_it_through_a_kill(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut server = MongodbServer::start(&[]).unwrap();
            let options =
                MongodbOptions { uri: server.uri(), database: "a_b".into(), ..MongodbOptions::default() };
            let model = replay(&MongodbStore::open(&options).unwrap(), &steps).await;
            server.kill().unwrap();
            server.restart().unwrap();
            model.compare(&MongodbStore::open(&options).unwrap()).await;
        });
    }
}
