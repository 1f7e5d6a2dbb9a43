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
            && std::fs::read_to_string(&path)?.contains("\nkind: CaipeSupervisor")
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
    let setup = Setup::new()?;
    for file in files {
        let output = setup.run(&["check", "--cluster", "-f", &file.to_string_lossy()]).await?;
        let faults = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{}: {faults}", file.display());
    }
    Ok(())
}
