//! Watches that lag, skip states or deliver kinds in another order.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use caipe_fixtures::apiserver::{Access, ApiServer, View};

use super::plan::{campaign, some};
use super::script::{Run, life, undisturbed, verdict};
use super::test_cluster::TestCluster;

#[derive(Clone)]
struct Plan {
    name: String,
    view: View,
    /// Whether the history is forgotten again and again, so that watches must list.
    forgets: bool,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn plans() -> Vec<Plan> {
    let plan = |name: String, view: View| Plan { name, view, forgets: false };
    let mut plans = Vec::new();
    for lag in 1..=12 {
        plans.push(plan(format!("everything lags {lag} revisions"), View { lag, ..View::default() }));
        plans.push(plan(
            format!("changes are merged, {lag} at a time"),
            View { lag, coalesce: true, ..View::default() },
        ));
    }
    let resources = [
        "caipesupervisors.caipe.io",
        "deployments.apps",
        "pods",
        "configmaps",
        "secrets",
        "services",
        "networkpolicies.networking.k8s.io",
        "serviceaccounts",
    ];
    for resource in resources {
        for lag in [2, 5, 9] {
            let lags = BTreeMap::from([(resource.to_owned(), lag)]);
            plans.push(plan(format!("{resource} lag {lag} revisions"), View { lags, ..View::default() }));
            let lags = BTreeMap::from([(resource.to_owned(), 0)]);
            plans.push(plan(format!("all but {resource} lag {lag}"), View { lags, lag, ..View::default() }));
        }
    }
    for events in 1..=6 {
        let view = View { cut_after: Some(events), ..View::default() };
        plans.push(plan(format!("watches break after {events} events"), view.clone()));
        plans.push(Plan {
            name: format!("watches break after {events} events, and it is too late to go on"),
            view,
            forgets: true,
        });
    }
    plans.push(Plan {
        name: "watches that go on are too late".to_owned(),
        view: View { expire: true, ..View::default() },
        forgets: false,
    });
    plans
}

/// Lets the client see everything from time to time, as in the end it does.
async fn catch_up(access: Access, server: ApiServer, plan: Plan) {
    loop {
        access.see(|view| *view = plan.view.clone());
        tokio::time::sleep(Duration::from_secs(7)).await;
        access.see(|view| *view = View::default());
        if plan.forgets {
            server.compact();
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn stale_or_broken_watches_make_no_difference() {
    let script = life();
    let reference = undisturbed(&script).await;
    let (script, reference) = (&script, &reference);
    campaign("of views", some(plans(), 4), |plan| async move {
        let run = Run::new(TestCluster::new(), &Arc::default(), |_| None);
        let forgets = plan.forgets;
        let seeing = tokio::spawn(catch_up(run.operator.access.clone(), run.cluster.server.clone(), plan));
        let mut done = run.play(script).await;
        seeing.abort();
        if forgets {
            // What was made and removed cannot be counted without a history.
            for outcome in &mut done.outcomes {
                outcome.counts.clear();
            }
            let uncounted = reference.outcomes.iter().cloned().map(|mut outcome| {
                outcome.counts.clear();
                outcome
            });
            return verdict(&uncounted.collect::<Vec<_>>(), &done);
        }
        verdict(&reference.outcomes, &done)
    })
    .await;
}
