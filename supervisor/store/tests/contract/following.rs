use std::sync::Arc;
use std::time::Duration;

use caipe_store::{Commit, Follower, Store, TaskPhase, Topic};
use futures::FutureExt as _;
use futures::future::join_all;

use crate::samples::{logged, recorded, task};

async fn begin(store: &dyn Store) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
}

fn last(first: u64, count: u64, phase: TaskPhase) -> Commit {
    Commit { task: Some(task("t", "one", phase, 1)), ..logged("t", first, count) }
}

/// The numbers of all events until the end.
async fn rest(mut follower: Follower) -> Vec<u64> {
    let all = async {
        let mut numbers = Vec::new();
        while let Some(event) = follower.next().await.unwrap() {
            numbers.push(event.seq);
        }
        assert!(follower.next().await.unwrap().is_none(), "it stays at its end");
        numbers
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("the log ends")
}

/// Many readers of one log, some from the middle, one of which reads only once everything is written.
pub(crate) async fn followers_miss_nothing_and_repeat_nothing(store: &Arc<dyn Store>) {
    const COMMITS: u64 = 300;
    begin(&**store).await;
    let follow = |after| Follower::new(store.clone(), "t", after);
    let readers = join_all((0..32).map(|reader| tokio::spawn(rest(follow(reader * 10)))));
    let slow = follow(0);
    for step in 0..COMMITS {
        store.commit(logged("t", step * 3 + 1, 3)).await.unwrap();
    }
    let end = COMMITS * 3 + 1;
    store.commit(last(end, 1, TaskPhase::Completed)).await.unwrap();
    for (reader, numbers) in (0..).zip(readers.await) {
        assert_eq!(numbers.unwrap(), (reader * 10 + 1..=end).collect::<Vec<_>>(), "reader {reader}");
    }
    assert_eq!(rest(slow).await, (1..=end).collect::<Vec<_>>());
}

/// A run ends when its task ends, or waits for a person. A number that is left out does not stop a reader.
pub(crate) async fn a_follower_ends_with_the_run(store: &Arc<dyn Store>) {
    assert!(rest(Follower::new(store.clone(), "none", 0)).await.is_empty());
    begin(&**store).await;
    let reading = tokio::spawn(rest(Follower::new(store.clone(), "t", 0)));
    store.commit(logged("t", 1, 2)).await.unwrap();
    store.commit(last(40, 2, TaskPhase::InputRequired)).await.unwrap();
    assert_eq!(reading.await.unwrap(), [1, 2, 40, 41]);
    assert_eq!(rest(Follower::new(store.clone(), "t", 40)).await, [41]);
    // Someone answers.
    store.commit(last(42, 1, TaskPhase::Working)).await.unwrap();
    let mut follower = Follower::new(store.clone(), "t", 41);
    assert_eq!(follower.next().await.unwrap().unwrap().seq, 42);
    assert!(follower.next().now_or_never().is_none(), "the run is under way");
    // An end without an event.
    let reading = tokio::spawn(rest(follower));
    store.commit(recorded(task("t", "one", TaskPhase::Canceled, 2))).await.unwrap();
    assert!(reading.await.unwrap().is_empty());
}

/// Dropping the future of the next event loses no event.
pub(crate) async fn a_follower_that_stops_in_between_continues_there(store: &Arc<dyn Store>) {
    begin(&**store).await;
    let mut follower = Follower::new(store.clone(), "t", 0);
    let mut numbers = Vec::new();
    for seq in 1..=20 {
        for _ in 0..3 {
            numbers.extend(follower.next().now_or_never().map(|event| event.unwrap().unwrap().seq));
            tokio::task::yield_now().await;
        }
        store.commit(logged("t", seq, 1)).await.unwrap();
    }
    store.commit(recorded(task("t", "one", TaskPhase::Completed, 2))).await.unwrap();
    numbers.extend(rest(follower).await);
    assert_eq!(numbers, (1..=20).collect::<Vec<_>>());
}

/// Readers come and go: the next one is woken all the same.
pub(crate) async fn a_reader_that_stops_waiting_leaves_nothing(store: &Arc<dyn Store>) {
    begin(&**store).await;
    for seq in 1..=5 {
        let gone = store.watch("t", Topic::Events).await.unwrap();
        let mut changes = store.watch("t", Topic::Events).await.unwrap();
        drop(gone);
        assert!(changes.changed().now_or_never().is_none(), "nothing has changed since");
        store.commit(logged("t", seq, 1)).await.unwrap();
        tokio::time::timeout(Duration::from_secs(10), changes.changed()).await.expect("it is woken");
    }
}
