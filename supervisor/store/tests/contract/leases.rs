//! The rules move the clock. The one of this process stands still in between; that of a server does not stop.

use std::time::Duration;

use caipe_store::{Commit, Fence, LeaseTerm, Store, StoreError, TaskPhase};

use crate::Place;
use crate::samples::{logged, recorded, task, term};

const SHORT: Duration = Duration::from_secs(2);

/// The clock by which leases end.
pub(crate) enum Clock {
    Process,
    /// The URL, and the keys that move.
    Redis(String, String),
    #[cfg(feature = "mongodb")]
    Mongodb(String),
}

impl Clock {
    pub(crate) fn of(place: &Place) -> Self {
        match place {
            Place::Redis(server) => return Self::Redis(server.url(), "*".to_owned()),
            Place::Cluster { node, prefix, .. } => return Self::Redis(node.clone(), prefix.clone()),
            #[cfg(feature = "mongodb")]
            Place::Mongodb(server) => return Self::Mongodb(server.uri()),
            Place::Memory | Place::Directory(_) => {}
        }
        tokio::time::pause();
        Self::Process
    }

    /// A server's clock cannot be moved, so the ends of all its leases move towards it.
    async fn advance(&self, by: Duration) {
        const SHIFT: &str = "for _, key in ipairs(redis.call('KEYS', ARGV[2] .. ':t:*')) do
            if redis.call('HEXISTS', key, 'until') == 1 then redis.call('HINCRBY', key, 'until', -ARGV[1]) end
        end
        for _, key in ipairs(redis.call('KEYS', ARGV[2] .. ':leases')) do
            for _, id in ipairs(redis.call('ZRANGEBYSCORE', key, '(0', '+inf')) do
                redis.call('ZINCRBY', key, -ARGV[1], id)
            end
        end
        for _, key in ipairs(redis.call('KEYS', '*:k:*')) do
            redis.call('PEXPIRE', key, redis.call('PTTL', key) - ARGV[1])
        end";
        let (url, prefix) = match self {
            Self::Process => return tokio::time::advance(by).await,
            Self::Redis(url, prefix) => (url, prefix),
            #[cfg(feature = "mongodb")]
            Self::Mongodb(uri) => return shift_terms(uri, by).await,
        };
        let client = redis::Client::open(url.as_str()).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        let millis = u64::try_from(by.as_millis()).unwrap();
        let mut command = redis::cmd("EVAL");
        command.arg(SHIFT).arg(0).arg(millis).arg(prefix);
        command.query_async::<()>(&mut connection).await.unwrap();
    }
}

#[cfg(feature = "mongodb")]
async fn shift_terms(uri: &str, by: Duration) {
    use mongodb::bson::{Document, doc};
    let client = mongodb::Client::with_uri_str(uri).await.unwrap();
    let shift = doc! { "$inc": { "until": -i64::try_from(by.as_millis()).unwrap() } };
    for name in ["tasks", "claims"] {
        let collection = client.database("team_caipe").collection::<Document>(name);
        collection.update_many(doc! { "until": { "$gt": 0 } }, shift.clone()).await.unwrap();
    }
}

fn created(id: &str, owner: &str) -> Commit {
    Commit { create: Some(term(owner)), ..recorded(task(id, "one", TaskPhase::Submitted, 0)) }
}

fn under(token: u64, mut commit: Commit) -> Commit {
    commit.fence.as_mut().unwrap().token = token;
    commit
}

/// The owner that has the lease, as another owner learns it.
async fn holder(store: &dyn Store) -> String {
    match store.acquire("t", &term("nobody")).await {
        Err(StoreError::LeaseTaken { owner, until, .. }) => {
            let left = until.duration_since(jiff::Timestamp::now());
            // The clock of MongoDB has milliseconds.
            let longest = term("").ttl + Duration::from_millis(1);
            assert!(left <= longest.try_into().unwrap(), "{left}");
            owner
        }
        other => panic!("nobody has the lease: {other:?}"),
    }
}

pub(crate) async fn other_owners_wait_for_the_end_of_the_term(store: &dyn Store, clock: &Clock) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    let LeaseTerm { ttl, .. } = term("a");
    let first = store.acquire("t", &term("a")).await.unwrap();
    store.commit(under(first.token, logged("t", 1, 1))).await.unwrap();
    clock.advance(ttl.checked_sub(SHORT).unwrap()).await;
    assert_eq!(holder(store).await, "a");
    store.commit(under(first.token, logged("t", 2, 1))).await.expect("a refused owner changes nothing");
    clock.advance(SHORT).await;
    let second = store.acquire("t", &term("b")).await.unwrap();
    assert!(second.token > first.token);
    for lost in [
        store.commit(under(first.token, logged("t", 3, 1))).await.unwrap_err(),
        store.renew("t", first.token, ttl).await.unwrap_err(),
    ] {
        assert_eq!(lost.category(), "lease_lost", "{lost}");
    }
    store.release("t", first.token).await.unwrap();
    assert_eq!(holder(store).await, "b", "the earlier owner releases nothing");
}

pub(crate) async fn renewal_extends_a_lease(store: &dyn Store, clock: &Clock) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    let LeaseTerm { ttl, .. } = term("a");
    let lease = store.acquire("t", &term("a")).await.unwrap();
    for _ in 0..5 {
        clock.advance(ttl / 2).await;
        store.renew("t", lease.token, ttl).await.unwrap();
    }
    assert_eq!(holder(store).await, "a");
    // Its term ends, but no other owner comes.
    clock.advance(2 * ttl).await;
    store.renew("t", lease.token, ttl).await.unwrap();
    assert_eq!(holder(store).await, "a");
    for (id, token) in [("t", lease.token + 1), ("none", 0)] {
        assert_eq!(store.renew(id, token, ttl).await.unwrap_err().category(), "lease_lost");
    }
}

pub(crate) async fn a_released_lease_is_free(store: &dyn Store, _: &Clock) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    let first = store.acquire("t", &term("a")).await.unwrap();
    for _ in 0..2 {
        store.release("t", first.token).await.unwrap();
    }
    store.release("none", 1).await.unwrap();
    assert_eq!(store.renew("t", first.token, term("a").ttl).await.unwrap_err().category(), "lease_lost");
    let second = store.acquire("t", &term("b")).await.unwrap();
    assert!(second.token > first.token);
    // With a commit, and only if the commit is written.
    let fence = Fence { task: "t".into(), token: second.token, number: 1, release: true, ..Fence::default() };
    let last = Commit { fence: Some(fence.clone()), ..recorded(task("t", "one", TaskPhase::Completed, 1)) };
    let early = Commit { fence: Some(Fence { token: first.token, ..fence }), ..last.clone() };
    assert_eq!(store.commit(early).await.unwrap_err().category(), "lease_lost");
    assert_eq!(holder(store).await, "b");
    store.commit(last).await.unwrap();
    store.acquire("t", &term("c")).await.unwrap();
}

/// A process that starts again does not wait for its own lease.
pub(crate) async fn an_owner_takes_its_own_lease_back(store: &dyn Store, _: &Clock) {
    store.commit(recorded(task("t", "one", TaskPhase::Working, 0))).await.unwrap();
    let first = store.acquire("t", &term("a")).await.unwrap();
    let second = store.acquire("t", &term("a")).await.unwrap();
    assert!(second.token > first.token);
    assert_eq!(
        store.commit(under(first.token, logged("t", 1, 1))).await.unwrap_err().category(),
        "lease_lost"
    );
    store.commit(under(second.token, logged("t", 1, 1))).await.unwrap();
    assert_eq!(holder(store).await, "a");
}

pub(crate) async fn a_new_task_has_an_owner(store: &dyn Store, clock: &Clock) {
    store.commit(created("t", "a")).await.unwrap();
    assert_eq!(holder(store).await, "a");
    store.renew("t", 0, term("a").ttl).await.unwrap();
    // Of two processes that receive the same message, one starts the task.
    for owner in ["a", "b"] {
        let exists = store.commit(created("t", owner)).await.unwrap_err();
        assert!(matches!(&exists, StoreError::Exists { task } if task == "t"), "{exists}");
    }
    assert_eq!(holder(store).await, "a");
    store.commit(logged("t", 1, 1)).await.unwrap();
    clock.advance(term("a").ttl).await;
    assert_eq!(store.acquire("t", &term("b")).await.unwrap().token, 1);
    store.commit(logged("t", 2, 1)).await.unwrap_err();
}

async fn abandoned(store: &dyn Store) -> Vec<String> {
    let mut found: Vec<_> = store.abandoned(10).await.unwrap().into_iter().map(|record| record.id).collect();
    found.sort();
    found
}

fn ended(id: &str, token: u64) -> Commit {
    let fence = Fence { task: id.into(), token, number: 1, release: true, ..Fence::default() };
    Commit { fence: Some(fence), ..recorded(task(id, "one", TaskPhase::Completed, 1)) }
}

pub(crate) async fn abandoned_tasks_are_those_that_nobody_runs(store: &dyn Store, clock: &Clock) {
    for (id, phase) in [("asks", TaskPhase::InputRequired), ("over", TaskPhase::Failed)] {
        store.commit(recorded(task(id, "one", phase, 0))).await.unwrap();
    }
    for id in ["ended", "left", "renewed", "silent"] {
        store.commit(created(id, "a")).await.unwrap();
    }
    assert_eq!(abandoned(store).await, [""; 0]);
    store.commit(ended("ended", 0)).await.unwrap();
    store.release("left", 0).await.unwrap();
    assert_eq!(abandoned(store).await, ["left"], "a released lease need not end");
    let LeaseTerm { ttl, .. } = term("a");
    clock.advance(ttl / 2).await;
    store.renew("renewed", 0, ttl).await.unwrap();
    clock.advance(ttl / 2).await;
    assert_eq!(abandoned(store).await, ["left", "silent"]);
    assert_eq!(store.abandoned(1).await.unwrap().len(), 1);
    store.acquire("left", &term("b")).await.unwrap();
    let token = store.acquire("silent", &term("b")).await.unwrap().token;
    assert_eq!(abandoned(store).await, [""; 0]);
    store.commit(ended("silent", token)).await.unwrap();
    clock.advance(2 * ttl).await;
    assert_eq!(abandoned(store).await, ["left", "renewed"]);
    // A task that waited and works again is one of them.
    store.commit(recorded(task("asks", "one", TaskPhase::Working, 1))).await.unwrap();
    assert_eq!(abandoned(store).await, ["asks", "left", "renewed"]);
}

pub(crate) async fn a_turn_is_for_one_task_under_way(store: &dyn Store, clock: &Clock) {
    let turn = async |task: &str| store.take_turn("one", task).await.unwrap();
    store.commit(created("first", "a")).await.unwrap();
    store.commit(created("second", "b")).await.unwrap();
    assert_eq!(
        turn("second").await.as_deref(),
        Some("first"),
        "a new conversation is that of its first task"
    );
    assert_eq!(store.take_turn("other", "second").await.unwrap(), None);
    clock.advance(2 * term("a").ttl).await;
    assert_eq!(turn("second").await.as_deref(), Some("first"), "another process continues it");
    assert_eq!(turn("first").await, None);
    store.commit(ended("first", 0)).await.unwrap();
    assert_eq!(turn("second").await, None);
    assert_eq!(turn("third").await.as_deref(), Some("second"));
    // A task that waits has the turn while a process continues it.
    store.commit(recorded(task("second", "one", TaskPhase::InputRequired, 1))).await.unwrap();
    let lease = store.acquire("second", &term("a")).await.unwrap();
    assert_eq!(turn("third").await.as_deref(), Some("second"));
    store.release("second", lease.token).await.unwrap();
    assert_eq!(turn("third").await, None);
}

pub(crate) async fn a_claim_has_one_owner_until_it_ends(store: &dyn Store, clock: &Clock) {
    let [one, other] = ["one", "other"].map(|owner| LeaseTerm { ttl: SHORT, ..term(owner) });
    assert!(store.claim("push a", &one).await.unwrap());
    assert!(!store.claim("push a", &other).await.unwrap(), "another owner has it");
    assert!(store.claim("push b", &other).await.unwrap(), "claims are independent");
    clock.advance(SHORT * 3 / 4).await;
    assert!(store.claim("push a", &one).await.unwrap(), "its owner keeps it");
    clock.advance(SHORT * 3 / 4).await;
    assert!(!store.claim("push a", &other).await.unwrap(), "the new term lasts");
    clock.advance(SHORT / 2).await;
    assert!(store.claim("push a", &other).await.unwrap(), "the term has ended");
    store.end_claim("push a", "one").await.unwrap();
    assert!(!store.claim("push a", &one).await.unwrap(), "only its owner ends it");
    store.end_claim("push a", "other").await.unwrap();
    assert!(store.claim("push a", &one).await.unwrap(), "it was ended");
}
