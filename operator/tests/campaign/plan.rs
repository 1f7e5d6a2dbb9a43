//! Many runs, and what they came to.

use std::fmt::Display;
use std::future::Future;

/// Whether more is to be planned than in a usual test run.
pub(crate) fn is_long() -> bool {
    std::env::var("CAIPE_CAMPAIGN").is_ok_and(|value| value == "long")
}

/// Of these, all in a long campaign, and every so many-th else; of those, the part that is asked for.
pub(crate) fn some<T>(all: Vec<T>, every: usize) -> Vec<T> {
    let every = if is_long() { 1 } else { every };
    let (part, parts) = part();
    all.into_iter().step_by(every).skip(part - 1).step_by(parts).collect()
}

/// `CAIPE_CAMPAIGN_PART=2/8` is the second eighth: a long campaign takes hours, and can be shared out.
fn part() -> (usize, usize) {
    let Ok(text) = std::env::var("CAIPE_CAMPAIGN_PART") else { return (1, 1) };
    let read = text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
    match read {
        Some((part, parts)) if (1..=parts).contains(&part) => (part, parts),
        _ => panic!("CAIPE_CAMPAIGN_PART is {text:?}, and should be as 2/8"),
    }
}

/// Runs every plan; prints how many there were and how many differences they made, and fails if there was one.
pub(crate) async fn campaign<P: Display, F: Future<Output = Vec<String>>>(
    name: &str,
    plans: Vec<P>,
    run: impl Fn(P) -> F,
) {
    let (count, mut differences) = (plans.len(), Vec::new());
    for plan in plans {
        let reported = plan.to_string();
        for difference in run(plan).await {
            println!("campaign {name}: {reported}: {difference}");
            differences.push(format!("{reported}: {difference}"));
        }
    }
    println!("campaign {name}: {count} plans, {} differences", differences.len());
    assert!(
        differences.is_empty(),
        "{}",
        differences.iter().take(40).cloned().collect::<Vec<_>>().join("\n")
    );
}
