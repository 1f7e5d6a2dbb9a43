//! A sandbox for tests.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caipe_engine::ToolOutput;
use caipe_fixtures::requirements::Requirement;
use caipe_supervisor::delegation::RunInfo;
use caipe_supervisor::tools::{Caller, ShellSettings, ShellTools, ToolSource as _};
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The tool, with the directories of calls in a directory of its own.
pub(crate) struct Sandbox {
    pub(crate) tools: ShellTools,
    pub(crate) calls: TempDir,
}

impl Sandbox {
    pub(crate) fn new(landlock: u8) -> Self {
        Self::with(landlock, |settings| settings)
    }

    pub(crate) fn with(landlock: u8, change: impl FnOnce(ShellSettings) -> ShellSettings) -> Self {
        let calls = directory();
        let settings =
            ShellSettings { newest_landlock: Some(landlock), ..ShellSettings::new(calls.path().to_owned()) };
        Self { tools: ShellTools::new(change(settings)).unwrap(), calls }
    }

    /// Runs a command on no files.
    pub(crate) async fn run(&self, command: &str) -> ToolOutput {
        self.run_with(command, &[], 20.0, CancellationToken::new()).await
    }

    pub(crate) async fn run_with(
        &self,
        command: &str,
        files: &[(&str, &str)],
        seconds: f64,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let output = self.call(command, files, seconds, cancel).await;
        assert_eq!(
            std::fs::read_dir(self.calls.path()).unwrap().count(),
            0,
            "{command}: a directory is left"
        );
        output
    }

    /// Runs a command beside others.
    pub(crate) async fn run_no_check(&self, command: &str) -> ToolOutput {
        self.call(command, &[], 20.0, CancellationToken::new()).await
    }

    async fn call(
        &self,
        command: &str,
        files: &[(&str, &str)],
        seconds: f64,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let files: BTreeMap<_, _> =
            files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect();
        let caller = Caller {
            call: "c".to_owned(),
            run: RunInfo::default(),
            files: Arc::new(files),
            progress: mpsc::channel(1).0,
            status: None,
        };
        let arguments = json!({"command": command, "timeout_seconds": seconds});
        self.tools.call("shell_exec", arguments.as_object().unwrap().clone(), caller, cancel).await
    }
}

/// A directory that the user of commands could use, were they not confined.
pub(crate) fn directory() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    directory
}

/// The versions of Landlock to test: the newest, and older ones; `None` if commands cannot be confined here.
pub(crate) fn landlock_versions() -> Option<Vec<u8>> {
    let calls = directory();
    match ShellTools::new(ShellSettings::new(calls.path().to_owned())) {
        Ok(_) => Some(vec![u8::MAX, 5, 2]),
        Err(reason) => {
            Requirement::Sandbox.unmet(&reason.to_string());
            None
        }
    }
}

/// The processes with this text in their arguments.
pub(crate) fn processes_with(text: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let has_text = |path: &PathBuf| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    };
    entries.filter(has_text).collect()
}

/// Long enough for every command that ends by itself.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
