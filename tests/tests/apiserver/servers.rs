//! Both servers, and what is compared of their answers.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use caipe_fixtures::apiserver::ApiServer;
use caipe_tests::cluster::assets;
use caipe_tests::cluster::control_plane::ControlPlane;
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::difference::{differences, masked};
use super::requests::{Ask, THINGS, definition};

/// How long the real server may take to serve a new kind.
const SERVED: Duration = Duration::from_mins(1);

/// What all tests share, so that both servers have the same objects. One test at a time uses it.
static SHARED: Mutex<Option<Servers>> = Mutex::const_new(None);

struct Servers {
    real: ControlPlane,
    stand_in: ApiServer,
}

impl Servers {
    async fn start() -> Result<Self> {
        let real = ControlPlane::start().await?;
        Ok(Self { real, stand_in: ApiServer::new() })
    }
}

/// Runs a test on both servers, and fails with all differences that it finds.
pub(crate) async fn compare(test: impl AsyncFnOnce(&mut Pair<'_>) -> Result<()>) -> Result<()> {
    if !assets::complete() {
        return Ok(());
    }
    let mut shared = SHARED.lock().await;
    if shared.is_none() {
        *shared = Some(Servers::start().await?);
    }
    on(shared.as_mut().context("the servers run")?, test).await
}

/// The same on servers of its own: a restarted API server rejects watches as expired for some seconds.
pub(crate) async fn compare_alone(test: impl AsyncFnOnce(&mut Pair<'_>) -> Result<()>) -> Result<()> {
    if !assets::complete() {
        return Ok(());
    }
    on(&mut Servers::start().await?, test).await
}

async fn on(servers: &mut Servers, test: impl AsyncFnOnce(&mut Pair<'_>) -> Result<()>) -> Result<()> {
    let mut pair = Pair::new(servers).await?;
    pair.define().await?;
    test(&mut pair).await?;
    println!("{} comparisons, {} differences", pair.compared, pair.differences.len());
    ensure!(pair.differences.is_empty(), "{}", pair.differences.join("\n\n"));
    Ok(())
}

/// Both servers, as a test sees them: the real one, then the stand-in.
pub(crate) struct Pair<'a> {
    servers: &'a mut Servers,
    pub(crate) sides: [Side; 2],
    compared: usize,
    differences: Vec<String>,
}

impl<'a> Pair<'a> {
    async fn new(servers: &'a mut Servers) -> Result<Self> {
        let real = servers.real.access().client().await?;
        let stand_in = Client::new(servers.stand_in.service(), "default");
        Ok(Self { servers, sides: [real, stand_in].map(Side::new), compared: 0, differences: Vec::new() })
    }

    /// Creates the custom kind at both, and waits until the real one serves it.
    async fn define(&self) -> Result<()> {
        for side in &self.sides {
            let ask = Ask::post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition());
            side.send(&ask).await?;
            let served = async {
                while side.send(&Ask::get(THINGS)).await?.0 == 404 {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                anyhow::Ok(())
            };
            tokio::time::timeout(SERVED, served).await.context("the new kind is not served")??;
        }
        Ok(())
    }

    /// Sends a request to both, and compares the answers.
    pub(crate) async fn ask(&mut self, ask: &Ask) -> Result<()> {
        let mut answers = Vec::new();
        for side in &mut self.sides {
            answers.push(side.ask(ask, self.compared).await?);
        }
        self.compare(&ask.to_string(), &answers[0], &answers[1]);
        Ok(())
    }

    /// The same for several requests.
    pub(crate) async fn ask_all(&mut self, requests: &[Ask]) -> Result<()> {
        for request in requests {
            self.ask(request).await?;
        }
        Ok(())
    }

    /// Compares what both did.
    pub(crate) fn compare(&mut self, what: &str, real: &Value, stand_in: &Value) {
        self.compared += 1;
        let found = differences(real, stand_in);
        if !found.is_empty() {
            self.differences.push(format!("#{} {what}\n  {}", self.compared, found.join("\n  ")));
        }
    }

    /// Where the last list of each ended.
    pub(crate) fn list_positions(&self) -> [ListPosition; 2] {
        [0, 1].map(|side| self.sides[side].last_list.clone())
    }

    /// Has requests refer to these lists.
    pub(crate) fn continue_from(&mut self, positions: &[ListPosition; 2]) {
        for (side, position) in self.sides.iter_mut().zip(positions) {
            side.last_list = position.clone();
        }
    }

    /// Has requests refer to these versions as those of the last lists.
    pub(crate) fn start_from(&mut self, real: &str, stand_in: &str) {
        for (side, version) in self.sides.iter_mut().zip([real, stand_in]) {
            version.clone_into(&mut side.last_list.version);
        }
    }

    /// Makes both forget the past: what was changed before can neither be watched nor listed.
    pub(crate) async fn forget_history(&mut self) -> Result<()> {
        self.servers.real.compact().await?;
        self.servers.real.restart_server().await?;
        self.sides[0].client = self.servers.real.access().client().await?;
        self.servers.stand_in.compact();
        self.define().await
    }
}

/// One of the servers.
pub(crate) struct Side {
    pub(crate) client: Client,
    /// The newest version of each object, by its path.
    newest: BTreeMap<String, String>,
    /// The number of the request whose answer was the first with a version.
    pub(crate) first_seen: BTreeMap<String, usize>,
    last_list: ListPosition,
}

/// Where a list ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListPosition {
    /// Its version, which requests call `LISTED`.
    version: String,
    /// What it gave to continue with, which requests call `NEXT`.
    next: String,
}

impl Side {
    fn new(client: Client) -> Self {
        Self {
            client,
            newest: BTreeMap::new(),
            first_seen: BTreeMap::new(),
            last_list: ListPosition::default(),
        }
    }

    /// What is compared of an answer.
    async fn ask(&mut self, ask: &Ask, number: usize) -> Result<Value> {
        let (code, answer) = self.send(ask).await?;
        self.remember(ask, &answer, number);
        Ok(json!({ "HTTP status": code, "answer": self.masked(&answer) }))
    }

    pub(crate) fn masked(&self, answer: &Value) -> Value {
        masked(answer, &self.first_seen)
    }

    fn remember(&mut self, ask: &Ask, answer: &Value, number: usize) {
        let metadata = &answer["metadata"];
        if let Some(next) = metadata["continue"].as_str() {
            next.clone_into(&mut self.last_list.next);
        }
        let Some(version) = metadata["resourceVersion"].as_str().map(str::to_owned) else { return };
        if answer["items"].is_array() {
            self.last_list.version = version;
            return;
        }
        let name = metadata["name"].as_str().unwrap_or_default();
        let path = if ask.path.ends_with(name) { ask.path.clone() } else { format!("{}/{name}", ask.path) };
        self.newest.insert(path.trim_end_matches("/status").to_owned(), version.clone());
        self.first_seen.entry(version).or_insert(number);
    }

    async fn send(&self, ask: &Ask) -> Result<(u16, Value)> {
        let response = self.client.send(self.request(ask)?).await?;
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await?;
        let text = || String::from_utf8_lossy(&bytes).into_owned().into();
        Ok((code, serde_json::from_slice(&bytes).unwrap_or_else(|_| text())))
    }

    /// The request, with this server's own versions in it.
    pub(crate) fn request(&self, ask: &Ask) -> Result<Request<Body>> {
        let mut body = ask.body.clone();
        if let Some(version) = self.newest.get(&ask.path).filter(|_| ask.current) {
            body["metadata"]["resourceVersion"] = json!(version);
        }
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let ListPosition { version, next } = &self.last_list;
        let query = ask.query.replace("LISTED", version).replace("NEXT", next);
        let request = Request::builder().method(ask.method.as_str()).uri(format!("{}?{query}", ask.path));
        let request = request.header("content-type", &ask.content_type).header("accept", &ask.accept);
        Ok(request.body(bytes.into())?)
    }
}
