//! The benchmark still runs against the supervisor as it is.

use std::process::Command;

use anyhow::{Result, ensure};
use caipe_tests::programs;

#[test]
fn the_workload_of_the_benchmark_runs_and_writes_its_table() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let page = folder.path().join("benchmarks.md");
    std::fs::write(
        &page,
        "<!-- written by make bench -->\n<!-- end of what make bench writes -->\n\nMore.\n",
    )?;
    let mut command = Command::new(programs::bench()?);
    command.args(["--part", "run", "--quick", "--supervisor"]).arg(programs::supervisor()?);
    let output = command.arg("--write").arg(&page).arg("--data-dir").arg(folder.path()).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let written = std::fs::read_to_string(&page)?;
    for row in
        ["CPU for a request, 8 at a time", "memory for an open stream", "20 tasks in the store", "More."]
    {
        ensure!(written.contains(row), "{row:?} is missing in: {written}");
    }
    Ok(())
}
