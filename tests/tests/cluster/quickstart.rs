//! The README's quick start in a cluster: its commands as they stand there, on a real control plane, say what it says
//! that they say.

use anyhow::Result;
use caipe_tests::cluster;
use caipe_tests::doc_commands;
use caipe_tests::programs::workspace;

use crate::shell;

#[test]
fn the_quick_start_in_a_cluster_is_as_the_readme_says() -> Result<()> {
    let text = std::fs::read_to_string(workspace().join("README.md"))?;
    let steps = doc_commands::steps(doc_commands::section(&text, "<!-- quick start on a control plane -->")?);
    assert!(steps.len() > 5, "{steps:?}");
    cluster::alone(async |cluster| steps.iter().try_for_each(|step| step.holds(|| shell(cluster))))
}
