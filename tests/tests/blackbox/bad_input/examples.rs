//! The resources in `examples/`.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use caipe_tests::programs::workspace;
use caipe_tests::supervisor::Setup;

/// The files with a `CaipeSupervisor`.
fn supervisors() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(workspace().join("examples"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "yaml")
            && std::fs::read_to_string(&path)?.contains("kind: CaipeSupervisor")
        {
            found.push(path);
        }
    }
    Ok(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_example_is_valid() -> Result<()> {
    let files = supervisors()?;
    ensure!(files.len() > 5, "{files:?}");
    for file in files {
        // An agent that is remote has an address only in a cluster.
        let setup = Setup::new()?.env("ARGOCD_AGENT_URL", "http://argocd.example:8000");
        let output = setup.run(&["check", "-f", &file.to_string_lossy()]).await?;
        let faults = String::from_utf8_lossy(&output.stderr).into_owned();
        // A container is the one thing that `check` refuses outside of a cluster.
        let faults: Vec<&str> =
            faults.lines().filter(|line| !line.contains("is a container, which needs a cluster")).collect();
        let container = std::fs::read_to_string(&file)?.contains("container:");
        ensure!(faults.iter().all(|line| line.contains("warning")), "{}: {faults:#?}", file.display());
        ensure!(output.status.success() != container, "{}: {}", file.display(), output.status);
    }
    Ok(())
}
