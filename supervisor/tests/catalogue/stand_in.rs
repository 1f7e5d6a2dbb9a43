//! Stand-ins for APIs and for tool servers over HTTP, and the proxy in front of all other hosts.

use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What every credential of a test contains.
pub(crate) const CREDENTIAL: &str = "fake-credential";
const BODY_LIMIT: usize = 1 << 20;

/// A request that a stand-in got.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) target: String,
    pub(crate) has_credential: bool,
    /// The name of a called tool, if the stand-in is a tool server.
    pub(crate) tool: Option<String>,
}

/// A running stand-in, and what it got.
#[derive(Clone)]
pub(crate) struct StandIn {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Answer,
}

/// How a stand-in answers.
#[derive(Clone)]
enum Answer {
    /// The status and `{}`; JSON-RPC as a tool server with these tools.
    Api { status: StatusCode, tools: &'static [&'static str] },
    /// Refuses every connection, except to Slack where that has a stand-in.
    Proxy { slack: Option<(TlsAcceptor, Router)> },
}

impl StandIn {
    /// An API that answers everything, or a tool server with the tools.
    pub(crate) async fn api(tools: &'static [&'static str]) -> Self {
        Self::start(Answer::Api { status: StatusCode::OK, tools }).await
    }

    /// An API that refuses every credential.
    pub(crate) async fn refusing() -> Self {
        Self::start(Answer::Api { status: StatusCode::UNAUTHORIZED, tools: &[] }).await
    }

    /// A proxy that refuses and records each connection, except those to slack.com if there is an API in its place.
    pub(crate) async fn proxy(slack: Option<(&Authority, &Self)>) -> Self {
        let slack = slack.map(|(authority, api)| (authority.acceptor.clone(), api.router()));
        Self::start(Answer::Proxy { slack }).await
    }

    async fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let stand_in = Self { url, seen: Arc::default(), answer };
        let router = stand_in.router();
        tokio::spawn(async move { axum::serve(listener, router).await });
        stand_in
    }

    /// The same stand-in over TLS.
    pub(crate) async fn with_tls(mut self, authority: &Authority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.url = format!("https://{}", listener.local_addr().unwrap());
        let (acceptor, router) = (authority.acceptor.clone(), self.router());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve_tls(stream, acceptor.clone(), router.clone()));
            }
        });
        self
    }

    fn router(&self) -> Router {
        Router::new().fallback(answer).with_state(self.clone())
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

async fn answer(State(stand_in): State<StandIn>, mut request: Request) -> Response {
    let upgrade = (request.method() == Method::CONNECT).then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let body = to_bytes(body, BODY_LIMIT).await.unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let target = head.uri.to_string();
    let names = ["authorization", "private-token", "x-api-key"];
    // Slack's token is in the form.
    let has_credential = names.iter().any(|name| head.headers.contains_key(*name))
        || String::from_utf8_lossy(&body).contains(CREDENTIAL);
    let tool = message["params"]["name"].as_str().filter(|_| message["method"] == "tools/call");
    stand_in.seen.lock().unwrap().push(Seen {
        target: target.clone(),
        has_credential,
        tool: tool.map(str::to_owned),
    });
    match (stand_in.answer, upgrade) {
        (Answer::Api { tools, status: StatusCode::OK }, _) if message["jsonrpc"] == "2.0" => {
            tool_server(tools, &message)
        }
        (Answer::Api { status: StatusCode::OK, .. }, _) => {
            axum::Json(content(head.uri.path())).into_response()
        }
        (Answer::Api { status, .. }, _) => {
            (status, axum::Json(json!({"message": status.to_string()}))).into_response()
        }
        (Answer::Proxy { slack: Some((acceptor, router)) }, Some(upgrade))
            if target.trim_end_matches(":443").ends_with("slack.com") =>
        {
            tokio::spawn(async move {
                if let Ok(stream) = upgrade.await {
                    serve_tls(TokioIo::new(stream), acceptor, router).await;
                }
            });
            StatusCode::OK.into_response()
        }
        (Answer::Proxy { .. }, _) => StatusCode::BAD_GATEWAY.into_response(),
    }
}

/// The answers that the programs of Slack and Kubernetes need; `{}` to all other requests.
fn content(path: &str) -> Value {
    match path {
        "/api/auth.test" => json!({"ok": true, "url": "https://stand-in.slack.com/", "team": "stand-in",
            "user": "bot", "team_id": "T1", "user_id": "U1"}),
        "/api/users.list" => json!({"ok": true, "members": [{"id": "U1", "name": "bot"}]}),
        "/api/conversations.list" => {
            json!({"ok": true, "channels": [{"id": "C1", "name": "general", "is_channel": true}]})
        }
        "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
        "/api/v1" => json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
            {"name": "pods", "namespaced": true, "kind": "Pod", "verbs": ["get", "delete"]}]}),
        "/api/chat.postMessage" => json!({"ok": true, "channel": "C1", "ts": "1.0"}),
        _ => json!({}),
    }
}

fn tool_server(tools: &[&str], message: &Value) -> Response {
    let Some(id) = message.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let tool = |name: &&str| json!({"name": name, "description": "", "inputSchema": {"type": "object"}});
    let result = match message["method"].as_str() {
        Some("initialize") => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "stand-in", "version": "1"}}),
        Some("tools/list") => json!({"tools": tools.iter().map(tool).collect::<Vec<_>>()}),
        Some("tools/call") => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => {
            let error = json!({"code": -32601, "message": "method not found"});
            return axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response();
        }
    };
    axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
}

async fn serve_tls(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    acceptor: TlsAcceptor,
    router: Router,
) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = TowerToHyperService::new(router);
    drop(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await);
}

/// A certificate for the stand-ins, which is its own authority.
pub(crate) struct Authority {
    acceptor: TlsAcceptor,
    pub(crate) certificate: PathBuf,
    _directory: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        drop(rustls::crypto::aws_lc_rs::default_provider().install_default());
        let directory = tempfile::tempdir().unwrap();
        let [certificate, key] = ["cert.pem", "key.pem"].map(|name| directory.path().join(name));
        let options = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=stand-in \
                       -addext subjectAltName=IP:127.0.0.1,DNS:slack.com,DNS:*.slack.com";
        let mut openssl = Command::new("openssl");
        openssl.args(options.split_whitespace()).arg("-out").arg(&certificate).arg("-keyout").arg(&key);
        let made = openssl.output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let chain = vec![CertificateDer::from_pem_file(&certificate).unwrap()];
        let config = rustls::ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_file(&key).unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        Self { acceptor, certificate, _directory: directory }
    }
}
