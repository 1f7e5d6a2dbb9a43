//! Where the built programs are.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, ensure};

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The program that people run.
pub fn supervisor() -> Result<PathBuf> {
    built("caipe-supervisor")
}

pub fn operator() -> Result<PathBuf> {
    built("caipe-operator")
}

/// The stand-in MCP server.
pub fn fixture_mcp() -> Result<PathBuf> {
    built("caipe-fixture-mcp")
}

/// The stand-in for a model provider.
pub fn fixture_model() -> Result<PathBuf> {
    built("caipe-fixture-model")
}

/// The benchmark.
pub fn bench() -> Result<PathBuf> {
    built("caipe-bench")
}

/// A program of the workspace. All are built once per test run, because `cargo test` builds only those of the
/// package under test; `CAIPE_BIN_DIR` names a directory of ones built before instead.
fn built(name: &str) -> Result<PathBuf> {
    static DIR: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let dir = DIR.get_or_init(|| bin_dir().map_err(|error| format!("{error:#}"))).as_ref();
    let path = dir.map_err(|error| anyhow!("{error}"))?.join(name);
    ensure!(path.exists(), "{} does not exist", path.display());
    Ok(path)
}

fn bin_dir() -> Result<PathBuf> {
    if let Some(dir) = std::env::var_os("CAIPE_BIN_DIR") {
        return Ok(dir.into());
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // With a test among what is built, features are those of `cargo test --workspace`: what that has built is used.
    cargo.current_dir(workspace()).args(["build", "--quiet", "--workspace", "--bins", "--test", "phases"]);
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let output = cargo.output().context("failed to run cargo")?;
    ensure!(
        output.status.success(),
        "failed to build the programs: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A test's executable lies in `deps`, beside which the programs of the same profile are.
    let executable = std::env::current_exe().context("failed to find the executable of this test")?;
    let profile = executable.ancestors().nth(2).context("this test runs outside a target directory")?;
    Ok(profile.to_path_buf())
}
