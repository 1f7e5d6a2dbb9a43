//! Tool servers on stdio behind the bridge: the built program, asked by our own client and by hand.

use std::process::Stdio;
use std::time::Duration;

use caipe_supervisor::mcp::{ServerPhase, ServerSpec, Transport};
use reqwest::StatusCode;
use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::harness::tests;
use crate::real::{MODERN, peer};
use crate::support::{
    Bench, MARK, PATIENCE, STAND_IN, eventually, message, names, notes, processes_of, state_file, status,
};

tests![
    serves_real_servers_of_both_eras,
    serves_the_stateless_era,
    has_a_child_ready_for_the_first_client,
    gives_each_session_a_child,
    reports_a_child_that_dies_and_starts_another,
    hides_secrets_of_a_child_that_cannot_start,
    forwards_requests_of_the_server,
    limits_sessions_and_message_sizes,
    ends_a_call_with_an_oversized_result,
    ends_all_children_at_the_end,
    listens_on_loopback_only,
    serves_clients_with_its_key_only,
    rejects_foreign_pages_and_invalid_requests,
];

/// A bridge in a process of its own.
struct Bridge {
    process: Child,
    url: String,
    mark: String,
    log: std::path::PathBuf,
    _directory: tempfile::TempDir,
}

impl Bridge {
    async fn start(flags: &[&str], command: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (address, log) = (directory.path().join("address"), directory.path().join("log"));
        let mark = uuid::Uuid::new_v4().to_string();
        let process = program()
            .args(["mcp-bridge", "--listen", "127.0.0.1:0", "--address-file", address.to_str().unwrap()])
            .args(flags)
            .arg("--")
            .args(command)
            .env(MARK, &mark)
            .env("STAND_IN_TOKEN", "hunter2hunter2")
            .stderr(std::fs::File::create(&log).unwrap())
            .stdout(std::fs::File::create(directory.path().join("out")).unwrap())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        eventually(|| address.exists()).await;
        let url = format!("http://{}/mcp", notes(&address));
        Self { process, url, mark, log, _directory: directory }
    }

    async fn stand_in(flags: &[&str], arguments: &[&str]) -> Self {
        let own = std::env::current_exe().unwrap();
        let command: Vec<&str> = [own.to_str().unwrap(), STAND_IN].iter().chain(arguments).copied().collect();
        Self::start(flags, &command).await
    }

    /// Waits until the server answers, which may take longer on a busy machine than a client waits for its first answer.
    async fn warm(&self) {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "hand", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let question =
            json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": meta}});
        let answer = tokio::time::timeout(PATIENCE, Hand::at(self).post(&question)).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let answer: Value = answer.json().await.unwrap();
        assert!(answer.get("result").is_some() || answer["error"]["code"] != -32000, "{answer}");
    }

    /// A toolbox of which this is the only server.
    async fn client(&self) -> Bench {
        let bench = Bench::settled([self.spec()]).await;
        let view = bench.toolbox.view();
        assert_eq!(status(&view, "tools").message, None, "{}\n{}", message(&view, "tools"), notes(&self.log));
        bench
    }

    fn spec(&self) -> ServerSpec {
        let mut spec = ServerSpec::new("tools", Transport::http(&self.url));
        // A server in Python on a busy machine takes long to start, and may be started twice.
        spec.start_deadline = PATIENCE * 3 / 4;
        spec
    }

    /// The children that run now.
    fn children(&self) -> Vec<String> {
        let own = self.process.id().unwrap_or_default().to_string();
        processes_of(&self.mark).into_iter().filter(|pid| *pid != own).collect()
    }

    /// Stops it in order, after which nothing may be left.
    async fn finish(mut self) {
        let pid = self.process.id().unwrap().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
        let ended = tokio::time::timeout(PATIENCE, self.process.wait()).await.unwrap().unwrap();
        assert!(ended.success(), "{ended}\n{}", notes(&self.log));
        assert_eq!(processes_of(&self.mark), Vec::<String>::new(), "processes are left");
    }
}

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_caipe-supervisor"));
    command.env_remove("CAIPE_ADDRESS_FILE").stdin(Stdio::null());
    command
}

/// A client that says just what a test wants it to.
struct Hand {
    client: reqwest::Client,
    url: String,
    session: Option<String>,
}

impl Hand {
    fn at(bridge: &Bridge) -> Self {
        Self { client: reqwest::Client::new(), url: bridge.url.clone(), session: None }
    }

    async fn post(&self, body: &Value) -> reqwest::Response {
        let request =
            self.client.post(&self.url).json(body).header("accept", "application/json, text/event-stream");
        let request = match &self.session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        };
        request.send().await.unwrap()
    }

    /// Begins a session.
    async fn begin(&mut self) -> Value {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"sampling": {}},
            "clientInfo": {"name": "hand", "version": "0"},
        });
        let answer =
            self.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await;
        self.session = answer.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let answer = answer.json().await.unwrap();
        if self.session.is_some() {
            let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
            assert_eq!(self.post(&ready).await.status(), StatusCode::ACCEPTED);
        }
        answer
    }
}

/// The next message of a stream.
async fn next(stream: &mut reqwest::Response) -> Value {
    let mut text = String::new();
    loop {
        let chunk = tokio::time::timeout(PATIENCE, stream.chunk()).await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&chunk.expect("the stream ended")).unwrap());
        let data = text.split_once("data: ").and_then(|(_, data)| data.split_once("\n\n"));
        if let Some((data, rest)) = data {
            assert_eq!(rest, "", "two messages at once");
            return serde_json::from_str(data).unwrap();
        }
    }
}

async fn serves_real_servers_of_both_eras() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    std::fs::write(path.join("note.txt"), "remember the milk").unwrap();
    let path = path.to_str().unwrap();
    let note = format!("{path}/note.txt");
    let cases = [
        (
            "py/bin/mcp-server-time",
            vec!["--local-timezone", "Europe/Berlin"],
            &["2026-07-28", "2025-11-25"][..],
            "convert_time",
            json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            "21:00:00+09:00",
        ),
        (
            "npm/node_modules/.bin/mcp-server-everything",
            vec!["stdio"],
            &["2025-11-25"][..],
            "echo",
            json!({"message": "hi"}),
            "hi",
        ),
        (
            "npm/node_modules/.bin/mcp-server-filesystem",
            vec![path],
            &["2025-11-25"][..],
            "read_text_file",
            json!({"path": note}),
            "remember the milk",
        ),
    ];
    for (program, arguments, versions, tool, given, expected) in cases {
        let Some(program) = peer(program) else { continue };
        let command: Vec<&str> = [program.as_str()].into_iter().chain(arguments).collect();
        let bridge = Bridge::start(&[], &command).await;
        let bench = bridge.client().await;
        // A slow machine may have the client begin the old way with a server that speaks both.
        let spoken = status(&bench.toolbox.view(), "tools").protocol_version;
        assert!(spoken.is_some_and(|spoken| versions.contains(&spoken.as_str())), "{program}");
        let calls = (0..8).map(|_| bench.ask(tool, given.clone()));
        for answer in futures::future::join_all(calls).await {
            assert!(answer.contains(expected), "{program}: {answer}");
        }
        bench.finish().await;
        bridge.finish().await;
    }
}

async fn has_a_child_ready_for_the_first_client() {
    let bridge = Bridge::stand_in(&[], &[]).await;
    eventually(|| bridge.children().len() == 1).await;
    let first = bridge.children();
    let bench = bridge.client().await;
    assert_eq!(bench.ask("echo", json!({"text": "hi"})).await, "hi");
    assert_eq!(bridge.children(), first);
    bench.finish().await;
    bridge.finish().await;
}

async fn serves_the_stateless_era() {
    let Some(python) = peer("py/bin/python") else { return };
    let (_directory, path, state) = state_file();
    let bridge = Bridge::start(&[], &[&python, MODERN, "stdio", &state]).await;
    bridge.warm().await;
    let (bench, other) = (bridge.client().await, bridge.client().await);
    let version = status(&bench.toolbox.view(), "tools").protocol_version;
    assert_eq!(version.as_deref(), Some("2026-07-28"));
    assert_eq!(bridge.children().len(), 1, "without sessions there is one child");
    tokio::select! {
        output = bench.toolbox.call("hang", Map::new(), CancellationToken::new()) => panic!("{}", output.content),
        () = eventually(|| notes(&path).contains("called")) => {}
    }
    eventually(|| notes(&path).contains("cancelled")).await;
    other.ask("grow", json!({})).await;
    for bench in [&bench, &other] {
        bench.until(|view| names(view).contains(&"grown")).await;
    }
    assert_eq!(bench.ask("grown", json!({"text": "grown"})).await, "grown");
    bench.finish().await;
    other.finish().await;
    bridge.finish().await;
}

async fn gives_each_session_a_child() {
    let bridge = Bridge::stand_in(&["--env", "STAND_IN_NAME=${STAND_IN_TOKEN}!"], &[]).await;
    let (one, two) = (bridge.client().await, bridge.client().await);
    assert_eq!(bridge.children().len(), 2, "a child for each, and none that nobody needs");
    let both = [&one, &two].map(|bench| async move {
        let slow = (0..5).map(|_| bench.ask("slow", json!({"ms": 300})));
        let quick = bench.ask("echo", json!({"text": "meanwhile"}));
        (futures::future::join_all(slow).await, quick.await)
    });
    for (slow, quick) in futures::future::join_all(both).await {
        assert_eq!((slow.len(), quick.as_str()), (5, "meanwhile"));
    }
    // What the child is started with may name what is in the environment.
    assert_eq!(one.ask("env", json!({"name": "STAND_IN_NAME"})).await, "hunter2hunter2!");
    one.finish().await;
    eventually(|| bridge.children().len() == 1).await;
    assert_eq!(two.ask("echo", json!({"text": "undisturbed"})).await, "undisturbed");
    two.finish().await;
    eventually(|| bridge.children().is_empty()).await;
    bridge.finish().await;
}

async fn reports_a_child_that_dies_and_starts_another() {
    let bridge = Bridge::stand_in(&[], &["--mode", "die-mid-call"]).await;
    let bench = bridge.client().await;
    let first = bridge.children();
    let refusal = bench.refusal("die", json!({})).await;
    assert!(refusal.contains("exit status: 1") && refusal.contains("the die tool was called"), "{refusal}");
    let mut answer = bench.call("echo", json!({"text": "back"})).await;
    // The session may be found dead by the call itself, or by what runs beside it.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while answer.is_error && tokio::time::Instant::now() < deadline {
        answer = bench.call("echo", json!({"text": "back"})).await;
    }
    assert_eq!(answer.content, "back");
    assert_ne!(bridge.children(), first);
    bench.finish().await;
    bridge.finish().await;
}

async fn hides_secrets_of_a_child_that_cannot_start() {
    let bridge = Bridge::stand_in(&[], &["--mode", "die-at-start"]).await;
    let bench = Bench::settled([bridge.spec()]).await;
    let message = message(&bench.toolbox.view(), "tools");
    assert!(message.contains("cannot log in with [redacted]") && !message.contains("hunter2"), "{message}");
    bench.finish().await;
    let log = notes(&bridge.log);
    assert!(log.contains("cannot log in with [redacted]") && !log.contains("hunter2"), "{log}");
    bridge.finish().await;
}

async fn forwards_requests_of_the_server() {
    let Some(program) = peer("npm/node_modules/.bin/mcp-server-everything") else { return };
    let bridge = Bridge::start(&[], &[&program, "stdio"]).await;
    let mut hand = Hand::at(&bridge);
    assert!(hand.begin().await["result"]["capabilities"]["tools"].is_object());
    let params = json!({"name": "trigger-sampling-request", "arguments": {"prompt": "say it"}});
    let call = json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params});
    let mut stream = hand.post(&call).await;
    let mut question = next(&mut stream).await;
    while question["method"] != "sampling/createMessage" {
        question = next(&mut stream).await;
    }
    let reply = json!({"role": "assistant", "content": {"type": "text", "text": "it"}, "model": "by-hand"});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": reply});
    assert_eq!(hand.post(&answer).await.status(), StatusCode::ACCEPTED);
    let result = next(&mut stream).await;
    assert_eq!(result["id"], "c");
    assert!(result["result"].to_string().contains("by-hand"), "{result}");
    assert!(stream.chunk().await.unwrap().is_none(), "the stream goes on after the answer");
    bridge.finish().await;
}

async fn limits_sessions_and_message_sizes() {
    let bridge = Bridge::stand_in(&["--max-sessions", "1"], &[]).await;
    let first = bridge.client().await;
    let second = Bench::settled([bridge.spec()]).await;
    let refusal = message(&second.toolbox.view(), "tools");
    assert!(refusal.contains("1 tool servers run, which is the limit"), "{refusal}");
    assert_eq!(first.ask("echo", json!({"text": "undisturbed"})).await, "undisturbed");
    first.finish().await;
    second.until_phase("tools", ServerPhase::Ready).await;
    let too_large = "x".repeat(17 * 1024 * 1024);
    let refusal = second.refusal("echo", json!({"text": too_large})).await;
    assert!(!refusal.contains("xxx"), "{}", refusal.chars().take(200).collect::<String>());
    second.finish().await;
    bridge.finish().await;
}

async fn ends_a_call_with_an_oversized_result() {
    let bridge = Bridge::stand_in(&[], &[]).await;
    let bench = bridge.client().await;
    let refusal = bench.refusal("big", json!({"chars": 17 * 1024 * 1024})).await;
    assert!(refusal.contains("The result of tool `big` (server `tools`) is larger than 16 MiB"), "{refusal}");
    bench.finish().await;
    bridge.finish().await;
}

async fn ends_all_children_at_the_end() {
    let bridge = Bridge::stand_in(&[], &["--mode", "stubborn"]).await;
    let bench = bridge.client().await;
    assert_eq!(bridge.children().len(), 2);
    bridge.finish().await;
    bench.finish().await;
}

async fn listens_on_loopback_only() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9100"] {
        let ended = program().args(["mcp-bridge", "--listen", address, "--", "cat"]).output();
        let ended = tokio::time::timeout(PATIENCE, ended).await.unwrap().unwrap();
        let words = String::from_utf8(ended.stderr).unwrap();
        assert!(!ended.status.success() && words.contains("CAIPE_TOOLS_KEY"), "{address}: {words}");
    }
}

async fn serves_clients_with_its_key_only() {
    let secrets = tempfile::tempdir().unwrap();
    std::fs::write(secrets.path().join("CAIPE_TOOLS_KEY"), "only-of-jira").unwrap();
    let flags = ["--secrets-dir", secrets.path().to_str().unwrap(), "--env", "OWN=${STAND_IN_TOKEN}"];
    let bridge = Bridge::stand_in(&flags, &[]).await;
    for (key, expected) in [(None, 401), (Some("Bearer guessed"), 401), (Some("Basic only-of-jira"), 401)] {
        let request = reqwest::Client::new().post(&bridge.url).body("{}");
        let request = key.into_iter().fold(request, |request, key| request.header("authorization", key));
        assert_eq!(request.send().await.unwrap().status(), expected, "{key:?}");
    }
    let headers = [("Authorization", "Bearer only-of-jira"), ("Host", "platform-jira.team-a.svc")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let transport = Transport::Http { url: bridge.url.clone(), headers };
    let bench = Bench::settled([ServerSpec::new("tools", transport)]).await;
    let key = json!({"name": "CAIPE_TOOLS_KEY"});
    assert_eq!(bench.ask("env", key).await, "(not set)", "the server does not get the key of its clients");
    assert_eq!(bench.ask("env", json!({"name": "OWN"})).await, "hunter2hunter2");
}

async fn rejects_foreign_pages_and_invalid_requests() {
    let bridge = Bridge::stand_in(&[], &[]).await;
    let mut hand = Hand::at(&bridge);
    hand.begin().await;
    let session = hand.session.clone().unwrap();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let (json, both) =
        (("content-type", "application/json"), ("accept", "application/json, text/event-stream"));
    let own = ("mcp-session-id", session.as_str());
    let cases: [(Headers<'_>, &str, u16); 9] = [
        (&[json, both, own], &list, 200),
        (&[json, both], &list, 400),
        (&[json, both, ("mcp-session-id", "guessed")], &list, 404),
        (&[json, both, own, ("mcp-protocol-version", "2024-11-05")], &list, 400),
        (&[json, both, own, ("host", "rebound.example.com")], &list, 403),
        (&[json, both, own, ("origin", "https://evil.example.com")], &list, 403),
        (&[json, own, ("accept", "application/json")], &list, 406),
        (&[both, own, ("content-type", "text/plain")], &list, 415),
        (&[json, both, own], "[]", 400),
    ];
    for (headers, body, expected) in cases {
        let request = hand.client.post(&bridge.url).body(body.to_owned());
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = tokio::time::timeout(Duration::from_secs(10), request.send()).await.unwrap().unwrap();
        assert_eq!(answer.status(), expected, "{headers:?} {body}");
    }
    let delete = |id: &str| hand.client.delete(&bridge.url).header("mcp-session-id", id).send();
    assert_eq!(delete(&session).await.unwrap().status(), 204);
    assert_eq!(delete(&session).await.unwrap().status(), 404);
    assert_eq!(hand.post(&json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await.status(), 404);
    eventually(|| bridge.children().is_empty()).await;
    bridge.finish().await;
}
type Headers<'a> = &'a [(&'a str, &'a str)];
