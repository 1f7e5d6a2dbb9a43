//! Any order of commits, accepted and refused, leaves what a much simpler store would hold.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod samples;

use std::collections::BTreeMap;
use std::path::Path;

use caipe_store::{Commit, MemoryStore, Saved, SqliteStore, Store, TaskFilter, TaskPhase};
use proptest::prelude::*;
use samples::{appended, event, logged, recorded, saved, state, task};
use tempfile::TempDir;

/// One commit, by small numbers.
#[derive(Debug, Clone)]
struct Step {
    context: u8,
    task: Option<(u8, TaskPhase)>,
    snapshot: bool,
    appends: u8,
    log: Option<Log>,
}

#[derive(Debug, Clone)]
struct Log {
    task: u8,
    count: u8,
    /// How far the number is from the right one.
    off: i8,
}

#[derive(Debug, Default)]
struct Model {
    conversations: BTreeMap<String, Saved>,
    phases: BTreeMap<String, TaskPhase>,
    logs: BTreeMap<String, u64>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let phase =
        prop_oneof![Just(TaskPhase::Working), Just(TaskPhase::Completed), Just(TaskPhase::InputRequired)];
    let off = prop_oneof![6 => Just(0_i8), 1 => -2_i8..=2];
    let log = (0_u8..3, 1_u8..5, off).prop_map(|(task, count, off)| Log { task, count, off });
    let step = (
        0_u8..3,
        prop::option::of((0_u8..3, phase)),
        prop::bool::weighted(0.3),
        0_u8..3,
        prop::option::of(log),
    );
    let step = step.prop_map(|(context, task, snapshot, appends, log)| Step {
        context,
        task,
        snapshot,
        appends,
        log,
    });
    prop::collection::vec(step, 1..25)
}

fn commit_of(step: &Step, number: usize, model: &Model) -> Commit {
    let context = format!("context-{}", step.context);
    let texts: Vec<_> = (0..step.appends).map(|index| format!("{number}.{index}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    let mut commit = appended(&context, &texts);
    if step.snapshot {
        commit.snapshot = saved(&context, &number.to_string()).snapshot;
    }
    if let Some((id, phase)) = step.task {
        commit.task =
            recorded(task(&format!("task-{id}"), &context, phase, i64::try_from(number).unwrap())).task;
    }
    if let Some(log) = &step.log {
        let id = format!("task-{}", log.task);
        let next = model.logs.get(&id).copied().unwrap_or_default() + 1;
        let events = logged(&id, next, log.count.into());
        (commit.events, commit.events_of) = (events.events, events.events_of);
        commit.first_seq = next.saturating_add_signed(log.off.into());
    }
    commit
}

impl Model {
    fn accepts(&self, commit: &Commit) -> bool {
        let known = |id: &String| {
            self.phases.contains_key(id) || commit.task.as_ref().is_some_and(|task| task.id == *id)
        };
        let next = self.logs.get(&commit.events_of).copied().unwrap_or_default() + 1;
        let log_fits = commit.events.is_empty() || (known(&commit.events_of) && commit.first_seq == next);
        let has_state = commit.snapshot.is_some() || self.conversations.contains_key(&commit.context);
        log_fits && (commit.appends.is_empty() || has_state)
    }

    fn apply(&mut self, commit: &Commit, number: usize) {
        if let Some(task) = &commit.task {
            self.phases.insert(task.id.clone(), task.phase);
        }
        if commit.snapshot.is_some() {
            let fresh = Saved { state: state(&number.to_string()), appends: Vec::new() };
            self.conversations.insert(commit.context.clone(), fresh);
        }
        if let Some(saved) = self.conversations.get_mut(&commit.context) {
            saved.appends.extend(commit.appends.iter().cloned());
        }
        *self.logs.entry(commit.events_of.clone()).or_default() += commit.events.len() as u64;
    }

    async fn compare(&self, store: &dyn Store) {
        for context in (0..3).map(|number| format!("context-{number}")) {
            let wanted = self.conversations.get(&context);
            assert_eq!(store.conversation(&context).await.unwrap().as_ref(), wanted, "{context}");
        }
        for id in (0..3).map(|number| format!("task-{number}")) {
            let last = self.logs.get(&id).copied().unwrap_or_default();
            let wanted: Vec<_> = (1..=last).map(|seq| (seq, event(&seq.to_string()))).collect();
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
}

async fn replay(store: &dyn Store, steps: &[Step]) -> Model {
    let mut model = Model::default();
    for (number, step) in steps.iter().enumerate() {
        let commit = commit_of(step, number, &model);
        let outcome = store.commit(commit.clone()).await;
        assert_eq!(outcome.is_ok(), model.accepts(&commit), "step {number}: {outcome:?}");
        if outcome.is_ok() {
            model.apply(&commit, number);
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
