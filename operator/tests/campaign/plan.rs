//! Many runs, and what they came to.

use std::fmt::Display;
use std::future::Future;

/// Whether more is to be planned than in a usual test run.
pub(crate) fn is_long() -> bool {
    std::env::var("CAIPE_CAMPAIGN").is_ok_and(|value| value == "long")
}

/// Of these, all in a long campaign, and every so many-th else.
pub(crate) fn some<T>(all: Vec<T>, every: usize) -> Vec<T> {
    let every = if is_long() { 1 } else { every };
    all.into_iter().step_by(every).collect()
}

/// Runs every plan; prints how many there were and how many differences they made, and fails if there was one.
pub(crate) async fn campaign<P: Display, F: Future<Output = Vec<String>>>(
    name: &str,
    plans: Vec<P>,
    run: impl Fn(P) -> F,
) {
    let (count, mut differences) = (plans.len(), Vec::new());
    for plan in plans {
        let said = plan.to_string();
        for difference in run(plan).await {
            println!("campaign {name}: {said}: {difference}");
            differences.push(format!("{said}: {difference}"));
        }
    }
    println!("campaign {name}: {count} plans, {} differences", differences.len());
    assert!(
        differences.is_empty(),
        "{}",
        differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
}
