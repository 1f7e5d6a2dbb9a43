//! The API server refuses a call, or says that it did not do what it did.

use std::fmt;
use std::sync::Arc;

use caipe_fixtures::apiserver::{Call, Failure, Fault};

use super::plan::{campaign, some};
use super::script::{Run, life, undisturbed, verdict};
use super::test_cluster::TestCluster;

struct Plan {
    at: Call,
    /// How many calls in a row.
    times: usize,
    name: &'static str,
    fault: Fault,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} times) at {}", self.name, self.times, self.at)
    }
}

fn faults() -> Vec<(&'static str, Fault)> {
    let conflict = Failure::new(409, "Conflict", "the object has been modified");
    vec![
        ("409", Fault::Refuse(conflict)),
        ("429", Fault::Refuse(Failure::too_many_requests())),
        ("500", Fault::Refuse(Failure::internal())),
        ("503", Fault::Refuse(Failure::unavailable())),
        ("504", Fault::Refuse(Failure::timed_out())),
        ("504 though done", Fault::Spoil(Failure::timed_out())),
        ("no answer though done", Fault::LoseAnswer),
        ("no connection", Fault::Lose),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_is_made_up_for() {
    let script = life();
    let reference = undisturbed(&script).await;
    let calls = reference.run.operator.access.calls();
    let mut plans = Vec::new();
    for (number, at) in calls.into_iter().enumerate() {
        for (name, fault) in faults() {
            let times = 1 + number % 3;
            plans.push(Plan { at: at.clone(), times, name, fault });
        }
    }
    let (script, reference) = (&script, &reference);
    campaign("of failed calls", some(plans, 41), |plan| async move {
        let (from, to, fault) = (plan.at.index, plan.at.index + plan.times, plan.fault.clone());
        let fail = move |call: &Call| (from..to).contains(&call.index).then(|| fault.clone());
        let done = Run::new(TestCluster::new(), &Arc::default(), fail).play(script).await;
        verdict(&reference.outcomes, &done)
    })
    .await;
}
