//! Scripts of user actions and their outcomes.

use serde_json::Value;
use tokio::sync::Notify;

use std::sync::Arc;

use caipe_fixtures::apiserver::{Call, Fault};

use super::kstatus::{self, Status};
use super::oracle::{self, Outcome};
use super::resources::{agent, container, everything, secret, supervisor};
use super::test_cluster::{NAMESPACE, Operator, TestCluster};

/// An action of a user.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Applies an object.
    Apply(Value),
    /// Deletes the supervisor.
    Delete,
    /// Waits until nothing happens any more.
    Settle,
}

/// A supervisor's life: made, agents moved both ways, a Secret changed, an agent removed, deleted and created again.
pub(crate) fn life() -> Vec<Step> {
    let resource = |distributed: &[&str]| supervisor("platform", &everything(distributed));
    let mut fewer = everything(&["runbooks"]);
    fewer["agents"].as_array_mut().unwrap().remove(2);
    let small = serde_json::json!({
        "model": { "provider": "openai", "name": "gpt-5", "secretRef": { "name": "llm" } },
        "agents": [agent("runbooks", &container("Sidecar"))],
    });
    vec![
        Step::Apply(secret("llm", "OPENAI_API_KEY", "x")),
        Step::Apply(secret("argocd", "ARGOCD_TOKEN", "x")),
        Step::Apply(resource(&["argocd"])),
        Step::Settle,
        Step::Apply(resource(&["runbooks"])),
        Step::Settle,
        Step::Apply(secret("argocd", "ARGOCD_TOKEN", "y")),
        Step::Apply(supervisor("platform", &fewer)),
        Step::Settle,
        Step::Delete,
        Step::Apply(supervisor("platform", &small)),
        Step::Settle,
    ]
}

/// A run of a script with an operator that is replaced when it dies.
pub(crate) struct Run {
    pub(crate) cluster: TestCluster,
    pub(crate) operator: Operator,
    died: Arc<Notify>,
}

/// What a run came to.
pub(crate) struct Done {
    pub(crate) run: Run,
    /// After each `Settle`.
    pub(crate) outcomes: Vec<Outcome>,
}

impl Run {
    /// With an operator whose calls suffer as planned; `died` is notified when it is to be killed and replaced.
    pub(crate) fn new(
        cluster: TestCluster,
        died: &Arc<Notify>,
        plan: impl FnMut(&Call) -> Option<Fault> + Send + 'static,
    ) -> Self {
        let operator = Operator::start_with(&cluster, None, plan);
        Self { cluster, operator, died: Arc::clone(died) }
    }

    /// Does every step.
    pub(crate) async fn play(mut self, script: &[Step]) -> Done {
        let (mut outcomes, mut since) = (Vec::new(), self.cluster.server.revision());
        for step in script {
            match step {
                Step::Apply(object) => self.cluster.apply(object),
                Step::Delete => {
                    self.cluster.server.delete("caipesupervisors.caipe.io", NAMESPACE, "platform");
                }
                Step::Settle => {
                    self.settle().await;
                    outcomes.push(Outcome::of(&self.cluster.server, since));
                    since = self.cluster.server.revision();
                }
            }
        }
        Done { run: self, outcomes }
    }

    async fn settle(&mut self) {
        loop {
            tokio::select! {
                () = self.cluster.settle() => return,
                () = self.died.notified() => {
                    let successor = Operator::start(&self.cluster, None);
                    std::mem::replace(&mut self.operator, successor).kill().await;
                }
            }
        }
    }
}

/// The script without anything going wrong.
pub(crate) async fn undisturbed(script: &[Step]) -> Done {
    Run::new(TestCluster::new(), &Arc::default(), |_| None).play(script).await
}

/// The differences of a run from the undisturbed one, and broken invariants.
pub(crate) fn verdict(reference: &[Outcome], done: &Done) -> Vec<String> {
    let pairs = reference.iter().zip(&done.outcomes).enumerate();
    let of_pair = |(at, (wanted, found)): (usize, (&Outcome, &Outcome))| {
        wanted.differences(found).into_iter().map(move |difference| format!("after step {at}: {difference}"))
    };
    let mut found: Vec<String> = pairs.flat_map(of_pair).collect();
    found.extend(oracle::unstable_times(&done.run.cluster.server));
    found.extend(oracle::wrong_turns(&done.run.cluster.server));
    let last = done.run.cluster.supervisor("platform").map(|found| kstatus::compute(&found));
    found.extend((last != Some(Status::CurrentSpec)).then(|| format!("it ended as {last:?}")));
    found
}
