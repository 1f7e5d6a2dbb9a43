//! A real API server, on loopback, with a directory of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Request;
use kube::Client;
use kube::config::{AuthInfo, Config};
use secrecy::SecretString;
use tempfile::TempDir;

/// Who may do everything.
const TOKEN: &str = "a-token-of-this-test";

/// How long it may take to start.
const START: Duration = Duration::from_mins(3);

/// The API server and its store; stopped when dropped.
pub(crate) struct Real {
    programs: Vec<Child>,
    port: u16,
    _dir: TempDir,
}

impl Drop for Real {
    fn drop(&mut self) {
        for program in self.programs.iter_mut().rev() {
            let _ = program.kill();
            let _ = program.wait();
        }
    }
}

fn program(name: &str) -> Option<PathBuf> {
    let path = Path::new(&std::env::var_os("KUBEBUILDER_ASSETS")?).join(name);
    path.is_file().then_some(path)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Real {
    /// Starts it; none if it is not there.
    pub(crate) async fn start() -> Option<Self> {
        let (Some(etcd), Some(apiserver)) = (program("etcd"), program("kube-apiserver")) else {
            println!("SKIPPED: KUBEBUILDER_ASSETS has no etcd and kube-apiserver");
            return None;
        };
        let dir = tempfile::tempdir().unwrap();
        let key = dir.path().join("key.pem");
        let made = Command::new("openssl").args(["genrsa", "-out"]).arg(&key).arg("2048").output();
        if !made.is_ok_and(|made| made.status.success()) {
            println!("SKIPPED: there is no openssl");
            return None;
        }
        std::fs::write(dir.path().join("tokens"), format!("{TOKEN},admin,admin,system:masters\n")).unwrap();
        let (store, peer, port) = (free_port(), free_port(), free_port());
        let programs =
            vec![run_etcd(&etcd, dir.path(), store, peer), run_server(&apiserver, dir.path(), store, port)];
        let real = Self { programs, port, _dir: dir };
        tokio::time::timeout(START, real.ready()).await.expect("the API server did not get ready");
        Some(real)
    }

    pub(crate) fn client(&self) -> Client {
        let mut config = Config::new(format!("https://127.0.0.1:{}", self.port).parse().unwrap());
        config.accept_invalid_certs = true;
        config.default_retry = false;
        config.auth_info = AuthInfo { token: Some(SecretString::from(TOKEN)), ..AuthInfo::default() };
        Client::try_from(config).unwrap()
    }

    async fn ready(&self) {
        let client = self.client();
        // The namespace is made last of what a new server makes.
        let ready = || Request::get("/api/v1/namespaces/default").body(Vec::new()).unwrap();
        while client.request::<serde_json::Value>(ready()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

fn run_etcd(program: &Path, dir: &Path, port: u16, peer: u16) -> Child {
    let (client, peer) = (format!("http://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
    let mut command = Command::new(program);
    command.arg("--data-dir").arg(dir.join("etcd"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync"]);
    quiet(&mut command)
}

fn run_server(program: &Path, dir: &Path, store: u16, port: u16) -> Child {
    let mut command = Command::new(program);
    let file = |name: &str| dir.join(name).display().to_string();
    command.args([
        format!("--etcd-servers=http://127.0.0.1:{store}"),
        format!("--secure-port={port}"),
        format!("--cert-dir={}", file("certificates")),
        format!("--service-account-key-file={}", file("key.pem")),
        format!("--service-account-signing-key-file={}", file("key.pem")),
        format!("--token-auth-file={}", file("tokens")),
    ]);
    command.args([
        "--bind-address=127.0.0.1",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--endpoint-reconciler-type=none",
        "--authorization-mode=RBAC",
        // No controller makes the account that pods would need.
        "--disable-admission-plugins=ServiceAccount",
    ]);
    quiet(&mut command)
}

fn quiet(command: &mut Command) -> Child {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}
