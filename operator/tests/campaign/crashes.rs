//! The operator dies at every call, before it does anything and after.

use std::fmt;
use std::sync::Arc;

use caipe_fixtures::apiserver::{Call, Fault};
use tokio::sync::Notify;

use super::plan::{campaign, some};
use super::script::{Run, life, undisturbed, verdict};
use super::test_cluster::TestCluster;

struct Plan {
    at: Call,
    after: bool,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crash {} {}", if self.after { "after" } else { "before" }, self.at)
    }
}

#[tokio::test(start_paused = true)]
async fn an_operator_that_dies_at_any_call_leaves_nothing_behind() {
    let script = life();
    let reference = undisturbed(&script).await;
    assert_eq!(verdict(&reference.outcomes, &reference), Vec::<String>::new());
    let calls = reference.run.operator.access.calls();
    let writes: Vec<Call> = calls.iter().filter(|call| call.verb.writes()).cloned().collect();
    let reads = calls.into_iter().filter(|call| !call.verb.writes()).collect();
    let mut plans = Vec::new();
    for at in some(writes, 4) {
        plans.push(Plan { at: at.clone(), after: false });
        plans.push(Plan { at, after: true });
    }
    plans.extend(some(reads, 23).into_iter().map(|at| Plan { at, after: false }));
    let (script, reference) = (&script, &reference);
    campaign("of crashes", plans, |plan| async move {
        let died = Arc::new(Notify::new());
        let reported = Arc::clone(&died);
        let (at, after) = (plan.at.index, plan.after);
        let crash = move |call: &Call| {
            (call.index >= at).then(|| {
                reported.notify_one();
                if after && call.index == at { Fault::LoseAnswer } else { Fault::Lose }
            })
        };
        let done = Run::new(TestCluster::new(), &died, crash).play(script).await;
        verdict(&reference.outcomes, &done)
    })
    .await;
}
