//! The session of docs/kubernetes.md: its commands, run on a real control plane, print what the page shows.

use anyhow::Result;
use caipe_tests::cluster;
use caipe_tests::doc_commands;
use caipe_tests::programs::workspace;

use crate::shell;

#[test]
fn the_session_in_a_cluster_is_as_the_page_shows() -> Result<()> {
    let text = std::fs::read_to_string(workspace().join("docs/kubernetes.md"))?;
    let steps = doc_commands::steps(doc_commands::section(&text, "<!-- quick start on a control plane -->")?);
    assert!(steps.len() > 5, "{steps:?}");
    cluster::alone(async |cluster| steps.iter().try_for_each(|step| step.holds(|| shell(cluster))))
}
