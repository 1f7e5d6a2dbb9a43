//! A supervisor under test: the built program in a process of its own, with a directory of its own. What serves one
//! agent is the same program with another command; see [`crate::agent`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::image::Unpacked;
use crate::invariants;
use crate::programs;
use crate::stream::{Answer, SseReader, TIMEOUT};

/// What a supervisor is started with.
#[derive(Debug, Clone)]
pub struct Setup {
    dir: Arc<TempDir>,
    working_directory: Option<PathBuf>,
    serves: Vec<OsString>,
    address: String,
    arguments: Vec<OsString>,
    environment: BTreeMap<String, OsString>,
    /// The image whose program runs; the built program if there is none.
    image: Option<Arc<Unpacked>>,
}

impl Setup {
    /// A supervisor without a resource file, in a new directory.
    pub fn new() -> Result<Self> {
        let dir = Arc::new(TempDir::with_prefix("caipe-test-").context("failed to make a directory")?);
        Ok(Self {
            dir,
            working_directory: None,
            serves: vec!["serve".into()],
            address: "127.0.0.1:0".to_owned(),
            arguments: Vec::new(),
            environment: BTreeMap::new(),
            image: None,
        })
    }

    /// A supervisor of this resource. The scripted model's turns, if given, are in `script.yaml` beside it.
    pub fn of(resource: &str, script: &str) -> Result<Self> {
        let setup = Self::new()?.file("script.yaml", script)?.file("supervisor.yaml", resource)?;
        let file = setup.dir().join("supervisor.yaml");
        Ok(setup.argument("-f").argument(file))
    }

    /// Writes a file into the directory.
    pub fn file(self, name: &str, content: &str) -> Result<Self> {
        std::fs::write(self.dir().join(name), content).with_context(|| format!("failed to write {name}"))?;
        Ok(self)
    }

    /// Serves with this command instead of `serve`.
    #[must_use]
    pub fn serving<A: Into<OsString>>(mut self, command: impl IntoIterator<Item = A>) -> Self {
        self.serves = command.into_iter().map(Into::into).collect();
        self
    }

    /// Listens here instead of at a free port, for example where the process before did: `127.0.0.1:34567`.
    #[must_use]
    pub fn listening_at(mut self, address: &str) -> Self {
        address.trim_start_matches("http://").trim_end_matches('/').clone_into(&mut self.address);
        self
    }

    /// Adds an argument of the command that serves.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Runs the program in another directory than its own.
    #[must_use]
    pub fn in_directory(mut self, directory: &Path) -> Self {
        self.working_directory = Some(directory.to_path_buf());
        self
    }

    /// Runs the program of an image, alone with the image's files and this setup's directory.
    #[must_use]
    pub fn of_image(self, image: &Arc<Unpacked>) -> Self {
        Self { image: Some(Arc::clone(image)), ..self }
    }

    /// Sets a variable. The program gets no others than these and `PATH`, `HOME`.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// A variable that was set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.environment.get(name).and_then(|value| value.to_str())
    }

    /// The directory, removed with the last user of this setup.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The program with these arguments and this setup's environment.
    pub fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = match &self.image {
            Some(image) => image.command(self.dir())?,
            None => Command::new(programs::supervisor()?),
        };
        command
            .args(arguments)
            .current_dir(self.working_directory.as_deref().unwrap_or(self.dir()))
            .env_clear()
            .kill_on_drop(true);
        for name in ["PATH", "HOME", "TMPDIR", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.envs(&self.environment).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs the program to its end.
    pub async fn run(&self, arguments: &[&str]) -> Result<Output> {
        let running = self.command(arguments)?.stdout(Stdio::piped()).stderr(Stdio::piped()).output();
        tokio::time::timeout(TIMEOUT, running)
            .await
            .context("the program did not end")?
            .context("failed to run it")
    }

    /// Starts the supervisor and waits until it is ready.
    pub async fn start(&self) -> Result<Supervisor> {
        let supervisor = self.start_unready().await?;
        supervisor.until_ready().await?;
        Ok(supervisor)
    }

    /// Starts the supervisor and waits only until it listens.
    pub async fn start_unready(&self) -> Result<Supervisor> {
        let address_file = self.dir().join(unique("address"));
        let mut command = self.command(&[])?;
        command
            .args(&self.serves)
            .args(["--listen", &self.address, "--data-dir"])
            .arg(self.dir().join("data"));
        command.arg("--address-file").arg(&address_file).args(&self.arguments);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("failed to start it")?;
        let log = Log::default();
        log.follow(child.stdout.take());
        log.follow(child.stderr.take());
        let address = address(&address_file, &mut child, &log).await?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Supervisor { child, log, http, url: format!("http://{address}"), setup: self.clone() })
    }
}

/// A running supervisor. It is killed when dropped.
#[derive(Debug)]
pub struct Supervisor {
    child: Child,
    log: Log,
    http: reqwest::Client,
    url: String,
    setup: Setup,
}

impl Supervisor {
    /// Its base URL, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it was started with.
    pub const fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Everything that it has logged.
    pub fn log(&self) -> String {
        self.log.text()
    }

    /// Its process.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_none())
    }

    /// GET of a path: status code and body.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        let response = self.http.get(format!("{}{path}", self.url)).timeout(TIMEOUT).send().await?;
        Ok((response.status().as_u16(), response.text().await?))
    }

    /// POST of any body to the A2A endpoint.
    pub async fn post(&self, body: impl Into<reqwest::Body>) -> Result<reqwest::Response> {
        let request = self.http.post(&self.url).header("content-type", "application/json");
        let request = request.header("accept", "application/json, text/event-stream");
        Ok(request.body(body).timeout(TIMEOUT * 2).send().await?)
    }

    /// A JSON-RPC call that is answered by one document: the whole answer.
    pub async fn call(&self, method: &str, params: Value) -> Result<Value> {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let text = self.post(body.to_string()).await?.text().await?;
        serde_json::from_str(&text).with_context(|| format!("the answer of {method} is not JSON: {text}"))
    }

    /// `message/stream` of a text, in a conversation or in a new one.
    pub async fn stream(&self, text: &str, context: Option<&str>) -> Result<SseReader> {
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": "message/stream", "params": message(text, context)});
        SseReader::new(self.post(body.to_string()).await?)
    }

    /// The whole answer to a text, in a new conversation; it must satisfy all invariants.
    pub async fn ask(&self, text: &str) -> Result<Answer> {
        self.ask_in(text, None).await
    }

    /// The task of `message/send` for a user that the client names.
    pub async fn send_for(&self, user: &str, text: &str) -> Result<Value> {
        let mut params = message(text, None);
        params["message"]["metadata"] = json!({ "user_email": user });
        Ok(self.call("message/send", params).await?["result"].take())
    }

    /// The task of `message/send` with a token.
    pub async fn send_with(&self, token: &str, text: &str) -> Result<Value> {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": message(text, None)});
        let request = self.http.post(self.url()).bearer_auth(token).json(&body);
        Ok(request.timeout(TIMEOUT * 2).send().await?.json::<Value>().await?["result"].take())
    }

    /// The whole answer to a text in a conversation; it must satisfy all invariants.
    pub async fn ask_in(&self, text: &str, context: Option<&str>) -> Result<Answer> {
        self.checked(Answer::new(self.stream(text, context).await?.rest().await?))
    }

    /// `answer`, if it satisfies all invariants.
    pub fn checked(&self, answer: Answer) -> Result<Answer> {
        self.checked_after(&Answer::default(), answer)
    }

    /// `answer`, which continues `before`, which asked, if it satisfies all invariants.
    pub fn checked_after(&self, before: &Answer, answer: Answer) -> Result<Answer> {
        let faults = invariants::faults_after(before, &answer);
        let log = || self.log();
        ensure!(faults.is_empty(), "broken rules: {faults:#?}\nevents:{}\nlog:\n{}", answer.outline(), log());
        Ok(answer)
    }

    /// Waits until `/ready` answers 200.
    pub async fn until_ready(&self) -> Result<()> {
        self.until("it is ready", async || Ok(self.get("/ready").await?.0 == 200)).await
    }

    /// Asks again and again whether `holds`, until it does.
    pub async fn until(&self, what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
        until(what, holds).await.with_context(|| format!("log:\n{}", self.log()))
    }

    /// Sends it a signal of this name, and does not wait.
    pub async fn signal(&self, name: &str) -> Result<()> {
        let pid = self.child.id().context("it has already ended")?;
        let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().await?;
        ensure!(sent.success(), "failed to send SIG{name}");
        Ok(())
    }

    /// Stops it as an orchestrator does (SIGTERM); returns its exit code, if it had one.
    pub async fn stop(mut self) -> Result<Option<i32>> {
        self.signal("TERM").await?;
        let ended = tokio::time::timeout(TIMEOUT, self.child.wait()).await;
        Ok(ended.with_context(|| format!("it did not stop on SIGTERM; log:\n{}", self.log()))??.code())
    }

    /// Kills it as a crash does (SIGKILL), and waits until it is gone.
    pub async fn kill(mut self) -> Result<()> {
        self.child.kill().await.context("failed to kill it")
    }
}

/// The parameters of a request that says `text`.
pub fn message(text: &str, context: Option<&str>) -> Value {
    let mut message = json!({"role": "user", "kind": "message", "messageId": unique("message"),
        "parts": [{"kind": "text", "text": text}]});
    if let Some(context) = context {
        message["contextId"] = context.into();
    }
    json!({"message": message})
}

/// A name that no other in this run of tests has.
pub fn unique(prefix: &str) -> String {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    format!("{prefix}-{}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
}

/// Asks again and again whether `holds`, until it does or the timeout is at its end.
pub async fn until(what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let waiting = async {
        while !holds().await? {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    };
    tokio::time::timeout(TIMEOUT, waiting).await.with_context(|| format!("it never came that {what}"))?
}

/// The processes whose command line contains `text`; for finding children that were left behind.
pub fn processes_with(text: &str) -> Vec<PathBuf> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let wanted = |path: &PathBuf| {
        std::fs::read(path.join("cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(text))
    };
    processes.filter(wanted).collect()
}

/// What the program writes.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<String>>);

impl Log {
    fn follow(&self, source: Option<impl AsyncRead + Unpin + Send + 'static>) {
        let Some(source) = source else { return };
        let log = Arc::clone(&self.0);
        tokio::spawn(async move {
            let mut lines = BufReader::new(source).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                if let Ok(mut text) = log.lock() {
                    text.push_str(&line);
                    text.push('\n');
                }
            }
        });
    }

    fn text(&self) -> String {
        self.0.lock().map(|text| text.clone()).unwrap_or_default()
    }
}

/// The address that the program wrote into its address file.
async fn address(file: &Path, child: &mut Child, log: &Log) -> Result<String> {
    let written = until("it listens", async || Ok(read_line(file).is_some()));
    tokio::select! {
        written = written => written.with_context(|| format!("log:\n{}", log.text()))?,
        ended = child.wait() => bail!("it ended at once ({:?}); log:\n{}", ended?.code(), log.text()),
    }
    read_line(file).context("the address file is gone")
}

fn read_line(file: &Path) -> Option<String> {
    let line = std::fs::read_to_string(file)
        .ok()?
        .trim()
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    (!line.is_empty()).then_some(line)
}
