//! What a commit costs, side by side: in memory, in SQLite and in a Redis of this machine that has each commit on its disk, also
//! with encryption: `cargo bench -p caipe-store`. One commit with one event is a step of a run; one with a hundred is text.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/samples/mod.rs"]
mod samples;

use std::sync::Arc;
use std::time::Instant;

use caipe_fixtures::redis::RedisServer;
use caipe_store::{
    Commit, EncryptedStore, Keyring, MemoryStore, RedisOptions, RedisStore, SqliteStore, Store, TaskPhase,
};
use samples::{logged, recorded, saved, task};

/// Commits per figure: shared by the writers, so that the time of a run and the memory it takes are bounded.
const COMMITS: u64 = 20_480;

/// Commits per figure where each waits for the disk alone.
const COMMITS_ALONE: u64 = 2_000;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let sqlite = Arc::new(SqliteStore::open(&directory.path().join("caipe.db")).unwrap());
    let server = RedisServer::start(&[]).unwrap();
    let redis = |database: &str| {
        let (url, database) = (server.url(), database.to_owned());
        RedisStore::open(&RedisOptions { url, database, ..RedisOptions::default() }).unwrap()
    };
    let keys = Keyring::parse("bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let encrypted = EncryptedStore::open(Arc::new(redis("encrypted")), keys).await.unwrap();
    let stores: [(&str, Arc<dyn Store>); 4] = [
        ("memory", Arc::new(MemoryStore::new())),
        ("sqlite", sqlite),
        ("redis", Arc::new(redis("plain"))),
        ("redis, encrypted", Arc::new(encrypted)),
    ];
    println!(
        "{:<16} {:>8} {:>14} {:>12} {:>14} {:>12}",
        "store", "writers", "events/commit", "commits/s", "events/s", "us/event"
    );
    for (name, store) in stores {
        for (writers, events) in [(1, 1), (1, 100), (32, 10), (256, 1), (256, 10)] {
            measure((name, &store), writers, events, false).await;
        }
        measure((name, &store), 256, 10, true).await;
        read((name, &store)).await;
        store.close().await.unwrap();
    }
}

async fn measure((name, store): (&str, &Arc<dyn Store>), writers: u64, events: u64, snapshots: bool) {
    let commits = if writers == 1 { COMMITS_ALONE } else { COMMITS };
    let begin = Instant::now();
    let share = commits / writers;
    let all: Vec<_> =
        (0..writers).map(|_| tokio::spawn(write(store.clone(), share, events, snapshots))).collect();
    for writer in all {
        writer.await.unwrap();
    }
    let seconds = begin.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let rate = commits as f64 / seconds;
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let events_rate = rate * events as f64;
    let content = if snapshots { format!("{events} + 8 KiB") } else { events.to_string() };
    let cost = 1e6 / events_rate;
    println!("{name:<16} {writers:>8} {content:>14} {rate:>12.0} {events_rate:>14.0} {cost:>12.2}");
}

async fn write(store: Arc<dyn Store>, commits: u64, events: u64, snapshots: bool) {
    let id = uuid();
    store.commit(recorded(task(&id, &id, TaskPhase::Working, 0))).await.unwrap();
    let state = "x".repeat(8 << 10);
    for number in 0..commits {
        let mut commit = Commit { context: id.clone(), ..logged(&id, number * events + 1, events) };
        commit.conversation = snapshots.then(|| saved(&id, &state).conversation).flatten();
        store.commit(commit).await.unwrap();
    }
}

async fn read((name, store): (&str, &Arc<dyn Store>)) {
    const EVENTS: u64 = 100_000;
    let id = uuid();
    store.commit(recorded(task(&id, &id, TaskPhase::Working, 0))).await.unwrap();
    for first in (0..EVENTS).step_by(10) {
        store.commit(logged(&id, first + 1, 10)).await.unwrap();
    }
    let begin = Instant::now();
    let (mut after, mut pages) = (0, 0_u32);
    while after < EVENTS {
        after += store.events(&id, after, 1000).await.unwrap().len() as u64;
        pages += 1;
    }
    let elapsed = begin.elapsed();
    println!("{name:<16} reads {EVENTS} events in {pages} pages: {elapsed:.1?}");
}

fn uuid() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("00000000-0000-7000-8000-{:012}", NEXT.fetch_add(1, Ordering::Relaxed))
}
