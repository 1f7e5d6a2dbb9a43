//! Runs tests side by side and reports them the way `cargo test` does.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// How many tests run at once.
const AT_ONCE: usize = 6;

pub(crate) struct Test {
    name: &'static str,
    body: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Test {
    pub(crate) fn new(name: &'static str, body: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { name, body: Box::pin(body) }
    }
}

/// Lists tests by their functions, which give them their names.
macro_rules! tests {
    ($($name:ident),+ $(,)?) => {
        pub(crate) fn tests() -> Vec<crate::harness::Test> {
            vec![$(crate::harness::Test::new(concat!(module_path!(), "::", stringify!($name)), $name())),+]
        }
    };
}
pub(crate) use tests;

/// Runs the selected tests, and ends the process with a failure if one fails.
pub(crate) fn run(tests: impl Iterator<Item = Test>) {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let selected =
        tests.filter(|test| words.is_empty() || words.iter().any(|word| test.name.contains(word.as_str())));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let failed = runtime.block_on(run_all(selected.collect()));
    if !failed.is_empty() {
        println!("\nfailures:\n    {}", failed.join("\n    "));
        std::process::exit(101);
    }
}

async fn run_all(tests: Vec<Test>) -> Vec<&'static str> {
    println!("\nrunning {} tests", tests.len());
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for Test { name, body } in tests {
        let places = Arc::clone(&places);
        running.spawn(async move {
            let _place = places.acquire().await.unwrap();
            // A task of its own, so that a panic ends this test only.
            (name, tokio::spawn(body).await.is_ok())
        });
    }
    let mut failed = Vec::new();
    while let Some(finished) = running.join_next().await {
        let (name, passed) = finished.unwrap();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        if !passed {
            failed.push(name);
        }
    }
    failed
}
