//! What a step of a run and a token cost with each store, beside memory: the processor time of this process, which is the
//! supervisor's part. `cargo bench -p caipe-store --features mongodb --bench costs [-- --write PAGE]`.

#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

#[path = "../tests/samples/mod.rs"]
mod samples;

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

use caipe_fixtures::mongodb::MongodbServer;
use caipe_fixtures::redis::RedisServer;
use caipe_store::{
    Commit, EncryptedStore, Keyring, MemoryStore, MongodbOptions, MongodbStore, RedisOptions, RedisStore,
    SqliteStore, Store, TaskPhase,
};
use samples::{logged, recorded, saved, task};

/// The runs at the same time.
const RUNS: u64 = 32;
/// The commits of each run for a figure; the test server of MongoDB is slow.
const COMMITS: u64 = 256;
const COMMITS_MONGODB: u64 = 16;
/// The tokens of a commit of text: 20 tokens a second, saved every 250 ms.
const TOKENS: u64 = 5;
/// What a step adds to the conversation.
const MESSAGE: usize = 1 << 10;
/// The marks around the table in the page.
const MARKS: [&str; 2] = ["<!-- written by make bench -->", "<!-- end of what make bench writes -->"];

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (server, mongodb_server) = (RedisServer::start(&[]).unwrap(), MongodbServer::start(&[]).unwrap());
    let redis = |database: &str| {
        let (url, database) = (server.url(), database.to_owned());
        RedisStore::open(&RedisOptions { url, database, ..RedisOptions::default() }).unwrap()
    };
    let keys = Keyring::parse("bench:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=").unwrap();
    let encrypted = EncryptedStore::open(Arc::new(redis("encrypted")), keys).await.unwrap();
    let uri = mongodb_server.uri();
    let options = MongodbOptions { uri, database: "costs".to_owned(), ..MongodbOptions::default() };
    let stores: [(&str, Arc<dyn Store>, u64); 5] = [
        ("memory", Arc::new(MemoryStore::new()), COMMITS),
        ("SQLite", Arc::new(SqliteStore::open(&directory.path().join("caipe.db")).unwrap()), COMMITS),
        ("Redis", Arc::new(redis("plain")), COMMITS),
        ("Redis, encrypted", Arc::new(encrypted), COMMITS),
        ("MongoDB (the test server)", Arc::new(MongodbStore::open(&options).unwrap()), COMMITS_MONGODB),
    ];
    let begin = Instant::now();
    let mut rows = String::new();
    let mut memory = None;
    for (name, store, commits) in stores {
        // Connections, prepared statements and caches are there before the first figure.
        cost(&store, commits / 8, 1, true).await;
        let costs = [cost(&store, commits, 1, true).await, cost(&store, commits, TOKENS, false).await];
        let [step, token] = *memory.get_or_insert(costs);
        let [step, token] = [costs[0] / step, costs[1] / token];
        let row = format!("| {name} | {:.0} µs | {step:.0} | {:.2} µs | {token:.0} |", costs[0], costs[1]);
        println!("{row}");
        writeln!(rows, "{row}").unwrap();
        store.close().await.unwrap();
    }
    println!("measured in {:.1?}", begin.elapsed());
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--write") {
        write(&arguments[at + 1], &rows);
    }
}

/// The processor time of this process for a commit, or for a token of it, in microseconds.
async fn cost(store: &Arc<dyn Store>, commits: u64, events: u64, is_step: bool) -> f64 {
    let before = processor_nanoseconds();
    let runs: Vec<_> =
        (0..RUNS).map(|_| tokio::spawn(run(store.clone(), commits, events, is_step))).collect();
    for run in runs {
        run.await.unwrap();
    }
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let micros = (processor_nanoseconds() - before) as f64 / 1000.0 / (RUNS * commits * events) as f64;
    micros
}

async fn run(store: Arc<dyn Store>, commits: u64, events: u64, is_step: bool) {
    let id = uuid();
    store.commit(recorded(task(&id, &id, TaskPhase::Working, 0))).await.unwrap();
    let message = "x".repeat(MESSAGE);
    for number in 0..commits {
        let mut commit = Commit { context: id.clone(), ..logged(&id, number * events + 1, events) };
        commit.conversation = is_step.then(|| saved(&id, &message).conversation).flatten();
        store.commit(commit).await.unwrap();
    }
}

/// The processor time of all threads of this process so far.
fn processor_nanoseconds() -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let times =
        threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok());
    times.filter_map(|time| time.split_whitespace().next()?.parse::<u64>().ok()).sum()
}

/// Writes the table into the page, between the marks.
fn write(page: &str, rows: &str) {
    let text = std::fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(MARKS[0]).unwrap();
    let (_, after) = rest.split_once(MARKS[1]).unwrap();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap();
    let load = load.split_whitespace().next().unwrap_or("?");
    let today = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let table = format!(
        "\n\n| Store | A step | Times memory | A token | Times memory |\n| --- | --- | --- | --- | --- |\n{rows}\n\
         Measured on {today} at a load of {load} on the machine, with {RUNS} runs at the same time.\n\n"
    );
    std::fs::write(page, format!("{before}{}{table}{}{after}", MARKS[0], MARKS[1])).unwrap();
}

fn uuid() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("00000000-0000-7000-8000-{:012}", NEXT.fetch_add(1, Ordering::Relaxed))
}
