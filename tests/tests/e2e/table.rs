//! The tables that these tests write.

use anyhow::Result;
use caipe_tests::live::report_table::{Table, cells};
use caipe_tests::live::scenario_run::Outcome;

/// What happens, and what becomes of the answers.
pub(crate) const SCENARIOS: Table = Table {
    name: "scenarios",
    rows: &[
        "nothing happens",
        "an agent is moved out and back, ten times",
        "an agent is moved out and back three times, the operator killed meanwhile",
        "the supervisor is restarted",
        "the supervisor is restarted, the operator killed meanwhile",
        "the supervisor's pod is deleted",
        "the supervisor's pod is deleted, the operator killed meanwhile",
        "the supervisor's pod is killed",
        "the supervisor's pod is killed, the operator killed meanwhile",
        "three pods with Redis are rolled out, scaled to five, evicted, scaled to two and autoscaled",
        "three pods with Redis are rolled out, scaled to five, evicted, scaled to two and autoscaled, the operator killed meanwhile",
        "one of three pods with Redis is killed",
        "one of three pods with Redis is killed, the operator killed meanwhile",
        "a remote agent's image is changed",
        "a remote agent's image is changed, the operator killed meanwhile",
        "a remote agent's Secret is rotated",
        "a remote agent's Secret is rotated, the operator killed meanwhile",
        "a remote agent's pod is deleted",
        "a remote agent's pod is deleted, the operator killed meanwhile",
        "a remote agent's pod is killed",
        "a remote agent's pod is killed, the operator killed meanwhile",
        "a remote agent's pod is killed three times, all its tools may be repeated",
        "a remote agent's pod is killed three times, all its tools may be repeated, the operator killed meanwhile",
        "a remote agent's pod is killed three times, the agent has Redis",
        "a remote agent's pod is killed three times, the agent has Redis, the operator killed meanwhile",
        "one of two pods of a remote agent with Redis is killed, three times",
        "one of two pods of a remote agent with Redis is killed, three times, the operator killed meanwhile",
        "a remote agent is killed for its memory",
        "an image cannot be pulled, then is corrected",
        "an image cannot be pulled, then is corrected, the operator killed meanwhile",
        "a tool server crashes again and again, then is corrected",
        "a tool server crashes again and again, then is corrected, the operator killed meanwhile",
        "a new pod of an agent is killed for its memory, then is given more",
        "a new pod of an agent is killed for its memory, then is given more, the operator killed meanwhile",
        "a quota is reached, then is raised",
        "a quota is reached, then is raised, the operator killed meanwhile",
        "another namespace with a supervisor is deleted",
        "another namespace with a supervisor is deleted, the operator killed meanwhile",
        "the operator is upgraded",
        "the operator is downgraded",
        "the kubelet is restarted",
        "the kubelet is restarted, the operator killed meanwhile",
        "containerd is restarted",
        "containerd is restarted, the operator killed meanwhile",
        "the API server is killed, back after 5 s",
        "etcd is killed, back after 5 s",
        "an agent joins and leaves, five times",
        "an agent joins and leaves, five times, the operator killed meanwhile",
        "Argo CD looks twenty times, moves an agent by a commit, meets a bad commit and its revert",
    ],
};

/// What was measured besides.
pub(crate) const FIGURES: Table = Table {
    name: "figures",
    rows: &[
        "a changed spec is in force, at the latest, after",
        "from `kubectl apply` to Ready, 1 agent in-process",
        "from `kubectl apply` to Ready, 5 agents in-process",
        "from `kubectl apply` to Ready, 14 agents in-process",
        "from `kubectl apply` to Ready, 1 agent remote",
        "from `kubectl apply` to Ready, 5 agents remote",
        "from `kubectl apply` to Ready, 14 agents remote",
        "memory of the operator",
        "memory of a supervisor with 14 agents in-process",
        "memory of a supervisor with 14 agents remote",
        "memory of a remote agent",
        "the image, as it is pulled",
    ],
};

pub(crate) fn tell(scenario: &str, outcome: &Outcome) -> Result<()> {
    let meanwhile = if outcome.killed { ", the operator killed meanwhile" } else { "" };
    SCENARIOS.report(&format!("{scenario}{meanwhile}"), &cells(outcome))
}

#[test]
fn the_table_has_no_other_rows() -> Result<()> {
    for table in [SCENARIOS, FIGURES] {
        assert_eq!(table.unknown()?, Vec::<String>::new(), "{}: no test writes these rows", table.name);
    }
    Ok(())
}
