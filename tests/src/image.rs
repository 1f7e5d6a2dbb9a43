//! A packed image, and its program run with nothing but the image's files: what a container engine would do.

use std::path::{Path, PathBuf};
use std::process::Command as Program;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::requirements::Requirement;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::programs;

/// An image's archive: `CAIPE_IMAGE`, which `make image-test` sets. Nothing without it: to build one takes minutes.
pub fn archive() -> Option<PathBuf> {
    let archive = std::env::var_os("CAIPE_IMAGE").map(PathBuf::from);
    if archive.is_none() {
        Requirement::Image.unmet("CAIPE_IMAGE names no image");
    }
    archive
}

/// The files of an image in a directory, which is removed with this.
#[derive(Debug)]
pub struct Unpacked {
    dir: TempDir,
    config: Value,
    /// The size of its layer as it is stored, in bytes.
    compressed: u64,
}

impl Unpacked {
    /// Unpacks an archive; nothing if nobody here may run a program alone.
    pub fn new(archive: &Path) -> Result<Option<Self>> {
        let image = Self::unpack(archive)?;
        let tried = image.run_alone(&["/usr/local/bin/caipe-supervisor", "--version"])?;
        if tried.status.success() {
            return Ok(Some(image));
        }
        let reason = String::from_utf8_lossy(&tried.stderr).into_owned();
        // Readable by every user.
        ensure!(reason.contains("unshare") || reason.contains("mount"), "the program does not run: {reason}");
        Requirement::Root
            .unmet(&format!("no program can run with the files of an image only: {}", reason.trim()));
        Ok(None)
    }

    fn unpack(archive: &Path) -> Result<Self> {
        let layout = TempDir::with_prefix("caipe-layout-")?;
        untar(archive, layout.path())?;
        let blob = |descriptor: &Value| -> Result<PathBuf> {
            let digest = descriptor["digest"].as_str().context("a descriptor without a digest")?;
            Ok(layout.path().join("blobs").join(digest.replace(':', "/")))
        };
        let index = json(&layout.path().join("index.json"))?;
        let manifest = json(&blob(&index["manifests"][0])?)?;
        let config = json(&blob(&manifest["config"])?)?;
        let layer = blob(&manifest["layers"][0])?;
        let dir = TempDir::with_prefix("caipe-image-")?;
        untar(&layer, dir.path())?;
        Ok(Self { dir, config, compressed: std::fs::metadata(layer)?.len() })
    }

    /// The root of its file system.
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// What it says of how it is run.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// The size of its layer as it is stored, in bytes.
    pub const fn compressed(&self) -> u64 {
        self.compressed
    }

    /// Runs a program of the image to its end.
    pub fn run_alone(&self, command: &[&str]) -> Result<std::process::Output> {
        let scratch = TempDir::with_prefix("caipe-alone-")?;
        let mut program = Program::new(programs::workspace().join("scripts/alone"));
        program.arg(self.root()).arg(scratch.path()).args(command);
        program.output().context("failed to run scripts/alone")
    }

    /// The supervisor of the image, which may write into `dir`.
    pub(crate) fn command(&self, dir: &Path) -> Result<Command> {
        let entry = self.config["config"]["Entrypoint"][0].as_str().context("the image has no entrypoint")?;
        let mut command = Command::new(programs::workspace().join("scripts/alone"));
        command.arg(self.root()).arg(dir).arg(entry);
        Ok(command)
    }
}

fn untar(archive: &Path, into: &Path) -> Result<()> {
    let done = Program::new("tar").arg("-xf").arg(archive).arg("-C").arg(into).output()?;
    ensure!(done.status.success(), "failed to unpack: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

fn json(path: &Path) -> Result<Value> {
    let text = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(serde_json::from_slice(&text)?)
}
