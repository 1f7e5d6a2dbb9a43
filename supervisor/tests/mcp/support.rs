//! What the tests share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use caipe_engine::ToolOutput;
use caipe_supervisor::mcp::{ServerPhase, ServerSpec, ServerStatus, Toolbox, ToolsView, Transport};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// The argument by which this executable becomes the stand-in.
pub(crate) const STAND_IN: &str = "--stand-in";
/// The variable that marks the processes of a test.
pub(crate) const MARK: &str = "STAND_IN_ID";
/// How long anything may take that should happen.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A toolbox, and the mark of its processes.
pub(crate) struct Bench {
    pub(crate) toolbox: Toolbox,
    mark: String,
}

pub(crate) fn stand_in(name: &str, arguments: &[&str]) -> ServerSpec {
    let program = std::env::current_exe().unwrap();
    let arguments = [STAND_IN].iter().chain(arguments).map(ToString::to_string);
    ServerSpec::new(name, Transport::stdio(program.to_str().unwrap(), arguments))
}

/// The same with a variable of its own.
pub(crate) fn with_env(mut spec: ServerSpec, name: &str, value: &str) -> ServerSpec {
    if let Transport::Stdio { env, .. } = &mut spec.transport {
        env.insert(name.to_owned(), value.to_owned());
    }
    spec
}

/// The environment of this process, with two secrets that no child gets.
pub(crate) fn environment() -> BTreeMap<String, String> {
    let own = [("CAIPE_TEST_API_KEY", "sk-very-secret"), ("STAND_IN_LOGIN", "hunter2hunter2")];
    std::env::vars().chain(own.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

impl Bench {
    pub(crate) fn start(specs: impl IntoIterator<Item = ServerSpec>) -> Self {
        let mark = uuid::Uuid::new_v4().to_string();
        let specs = specs.into_iter().map(|spec| with_env(spec, MARK, &mark)).collect();
        Self { toolbox: Toolbox::start(specs, &environment(), CancellationToken::new()), mark }
    }

    /// Starts the servers and waits until each is ready or has failed.
    pub(crate) async fn settled(specs: impl IntoIterator<Item = ServerSpec>) -> Self {
        let bench = Self::start(specs);
        bench.until(|view| view.settled).await;
        bench
    }

    /// Waits until the view is as it should be.
    pub(crate) async fn until(&self, holds: impl Fn(&ToolsView) -> bool) -> Arc<ToolsView> {
        let mut views = self.toolbox.watch();
        let waited = tokio::time::timeout(PATIENCE, views.wait_for(|view| holds(view))).await;
        let Ok(view) = waited else {
            panic!("the view stays {:#?}", self.toolbox.view().servers);
        };
        Arc::clone(&view.unwrap())
    }

    pub(crate) async fn until_phase(&self, server: &str, phase: ServerPhase) -> Arc<ToolsView> {
        self.until(|view| status(view, server).phase == phase).await
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutput {
        let arguments = arguments.as_object().unwrap().clone();
        tokio::time::timeout(PATIENCE, self.toolbox.call(tool, arguments, CancellationToken::new()))
            .await
            .unwrap()
    }

    /// A call that must succeed.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        assert!(!output.is_error, "{}", output.content);
        output.content
    }

    /// A call that must fail.
    pub(crate) async fn refusal(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await;
        assert!(output.is_error, "{}", output.content);
        output.content
    }

    /// The processes of this toolbox that run now.
    pub(crate) fn processes(&self) -> Vec<String> {
        processes_of(&self.mark)
    }

    /// Shuts the toolbox down, after which none of its processes may be left.
    pub(crate) async fn finish(self) {
        tokio::time::timeout(PATIENCE, self.toolbox.shutdown()).await.unwrap();
        assert_eq!(self.processes(), Vec::<String>::new(), "processes are left");
    }

    /// Drops the toolbox, after which its processes must end by themselves.
    pub(crate) async fn abandon(self) {
        let Self { toolbox, mark } = self;
        drop(toolbox);
        let empty =
            Self { toolbox: Toolbox::start(Vec::new(), &BTreeMap::new(), CancellationToken::new()), mark };
        eventually(|| empty.processes().is_empty()).await;
    }
}

/// The processes that bear this mark.
pub(crate) fn processes_of(mark: &str) -> Vec<String> {
    let entry = format!("{MARK}={mark}");
    let processes =
        std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().into_string().ok());
    processes.filter(|pid| environment_of(pid).split('\0').any(|variable| variable == entry)).collect()
}

/// The environment of a process; empty for one that has ended.
fn environment_of(pid: &str) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

pub(crate) fn status(view: &ToolsView, server: &str) -> ServerStatus {
    view.servers.iter().find(|status| status.name == server).unwrap().clone()
}

pub(crate) fn message(view: &ToolsView, server: &str) -> String {
    status(view, server).message.unwrap_or_default()
}

pub(crate) fn names(view: &ToolsView) -> Vec<&str> {
    view.tools.iter().map(|tool| tool.spec.name.as_str()).collect()
}

/// Waits until something holds.
pub(crate) async fn eventually(holds: impl Fn() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    waited.await.expect("it did not come about in time");
}

/// A file in a directory of its own, for a stand-in's notes. The directory goes with the first value.
pub(crate) fn state_file() -> (tempfile::TempDir, PathBuf, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state");
    let text = path.to_str().unwrap().to_owned();
    (directory, path, text)
}

/// What a stand-in noted.
pub(crate) fn notes(path: &PathBuf) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
