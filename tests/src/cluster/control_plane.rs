//! A real control plane: etcd, the API server and the controllers, with a directory and credentials of their own.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::assets;
use super::child_process::{Processes, Program};
use super::credentials::{self, Access};
use super::namespace::Admin;

/// Longest wait for a program of the control plane to be ready.
const START: Duration = Duration::from_mins(2);

/// The key that signs the tokens of service accounts.
const SIGNS: &str = "service-accounts.key";
/// The key that checks them.
const CHECKS: &str = "service-accounts.pub";

/// Who did what, for those whose permissions are tested: everybody but the control plane itself.
const AUDIT: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": [
  {"level": "None", "userGroups": ["system:masters", "system:nodes"]},
  {"level": "Metadata", "userGroups": ["system:serviceaccounts"]},
  {"level": "None"}]}"#;

/// A control plane, until it is dropped or this process ends.
#[derive(Debug)]
pub struct ControlPlane {
    // Stopped in this order: nobody outlives what it talks to.
    controllers: Mutex<Option<Program>>,
    server: Mutex<Option<Program>>,
    _etcd: Program,
    access: Access,
    address: Ipv4Addr,
    ports: [u16; 5],
    processes: Processes,
}

impl ControlPlane {
    /// A new one at an address of this machine, or of the network namespace that this thread is in.
    pub async fn start(address: Ipv4Addr) -> Result<Self> {
        let this = Self::start_without_controllers(address).await?;
        let controllers = this.processes.start("controllers", &mut this.controllers_command()?)?;
        put(&this.controllers, Some(controllers));
        Ok(this)
    }

    /// The same without `kube-controller-manager`: nothing but the API server changes an object.
    pub async fn start_without_controllers(address: Ipv4Addr) -> Result<Self> {
        let processes = Processes::new()?;
        let ports = free_ports(address)?;
        let token = credentials::administrator(&processes.dir().join("tokens.csv"))?;
        let [private, public] = [SIGNS, CHECKS].map(|name| processes.dir().join(name));
        credentials::signing_keys(&private, &public)?;
        std::fs::write(processes.dir().join("audit-policy.json"), AUDIT)?;
        let access = Access {
            server: format!("https://{address}:{}", ports[2]),
            authority: processes.dir().join("certificates/apiserver.crt"),
            token,
        };
        let etcd = processes.start("etcd", &mut etcd(processes.dir(), ports)?)?;
        let controllers = Mutex::default();
        let server = Mutex::default();
        let this = Self { controllers, server, _etcd: etcd, access, address, ports, processes };
        this.start_server().await?;
        this.access.write(&this.kubeconfig())?;
        Ok(this)
    }

    /// An administrator's access.
    pub const fn access(&self) -> &Access {
        &self.access
    }

    /// The same as a file, for programs.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir().join("kubeconfig")
    }

    /// The same with the directory that programs may call their home.
    pub fn admin(&self) -> Admin {
        Admin::new(&self.kubeconfig(), self.dir())
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        self.processes.dir()
    }

    /// Starts and stops programs together with it.
    pub const fn processes(&self) -> &Processes {
        &self.processes
    }

    /// The API server's address and port.
    pub const fn endpoint(&self) -> (Ipv4Addr, u16) {
        (self.address, self.ports[2])
    }

    /// Makes etcd forget every version of an object but the newest.
    pub async fn compact(&self) -> Result<()> {
        let url = |call: &str| format!("http://127.0.0.1:{}/v3/kv/{call}", self.ports[0]);
        let post = async |call: &str, body: serde_json::Value| -> Result<serde_json::Value> {
            let answer = reqwest::Client::new().post(url(call)).json(&body).send().await?;
            Ok(answer.error_for_status()?.json().await?)
        };
        let found = post("range", serde_json::json!({"key": "AA=="})).await?;
        post("compaction", serde_json::json!({"revision": found["header"]["revision"]})).await.map(drop)
    }

    /// Stops the API server for good, as a crash does.
    pub fn kill_server(&self) {
        put(&self.server, None);
    }

    /// Starts the API server at the address that it had; ends when it is ready.
    pub async fn start_server(&self) -> Result<()> {
        let program = self.processes.start("apiserver", &mut self.server_command()?)?;
        let ready = tokio::time::timeout(START, self.until_ready(&program)).await;
        ready.with_context(|| format!("the API server did not become ready:\n{}", program.log()))??;
        put(&self.server, Some(program));
        Ok(())
    }

    async fn until_ready(&self, program: &Program) -> Result<()> {
        loop {
            if let Some(status) = program.ended() {
                bail!("the API server ended ({status}):\n{}", program.log());
            }
            if self.access.authority.exists() && self.is_ready().await.unwrap_or_default() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn is_ready(&self) -> Result<bool> {
        let request = http::Request::get("/readyz").body(Vec::new())?;
        Ok(self.access.client().await?.request_text(request).await? == "ok")
    }

    fn server_command(&self) -> Result<Command> {
        let mut command = Command::new(assets::get("kube-apiserver")?);
        let dir = self.dir();
        command.arg(format!("--etcd-servers=http://127.0.0.1:{}", self.ports[0]));
        command.arg(format!("--bind-address={}", self.address));
        command.arg(format!("--advertise-address={}", self.address));
        command.arg(format!("--secure-port={}", self.ports[2]));
        for (flag, file) in [
            ("cert-dir", "certificates"),
            ("service-account-key-file", CHECKS),
            ("service-account-signing-key-file", SIGNS),
            ("token-auth-file", "tokens.csv"),
            ("audit-policy-file", "audit-policy.json"),
            ("audit-log-path", "audit.log"),
        ] {
            command.arg(format!("--{flag}={}", dir.join(file).display()));
        }
        command.args([
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--endpoint-reconciler-type=none",
            "--authorization-mode=RBAC",
            "--allow-privileged",
            // As OpenShift has it: an owner that blocks deletion is named only by who may.
            "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        ]);
        Ok(command)
    }

    fn controllers_command(&self) -> Result<Command> {
        let mut command = Command::new(assets::get("kube-controller-manager")?);
        command.arg(format!("--kubeconfig={}", self.kubeconfig().display()));
        let key = self.dir().join(SIGNS);
        command.arg(format!("--service-account-private-key-file={}", key.display()));
        command.arg(format!("--root-ca-file={}", self.access.authority.display()));
        command.arg(format!("--secure-port={}", self.ports[3]));
        command.arg(format!("--cert-dir={}", self.dir().join("controllers").display()));
        command.args([
            "--bind-address=127.0.0.1",
            "--leader-elect=false",
            // There is one node, it does not come and go, and it plays the kubelet.
            "--controllers=*,-node-lifecycle-controller,-node-ipam-controller",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ]);
        Ok(command)
    }

    /// The ends of what its programs wrote.
    pub fn log(&self) -> String {
        let text =
            |name: &str| format!("{name}:\n{}", super::child_process::tail(&self.dir().join(name), 15));
        ["node.log", "apiserver.log", "controllers.log"].map(text).join("\n")
    }

    /// What service accounts asked of the API server, one event each (`audit.k8s.io/v1`).
    pub fn audit(&self) -> Result<Vec<serde_json::Value>> {
        let text = std::fs::read_to_string(self.dir().join("audit.log")).unwrap_or_default();
        // The last line may not be whole yet.
        let whole = text.rfind('\n').and_then(|end| text.get(..end)).unwrap_or_default();
        whole.lines().map(|line| serde_json::from_str(line).context("the audit log is not JSON")).collect()
    }
}

fn etcd(dir: &Path, ports: [u16; 5]) -> Result<Command> {
    let mut command = Command::new(assets::get("etcd")?);
    let [client, peer, ..] = ports.map(|port| format!("http://127.0.0.1:{port}"));
    command.arg("--data-dir").arg(dir.join("etcd"));
    command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
    command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
    command.args(["--initial-cluster", &format!("default={peer}")]);
    // Nothing of it must outlive a loss of power.
    command.args(["--unsafe-no-fsync", "--log-level", "warn"]);
    Ok(command)
}

/// Ports that nobody has, all at once so that they differ.
fn free_ports(address: Ipv4Addr) -> Result<[u16; 5]> {
    let mut listeners = Vec::new();
    for place in 0..5 {
        let at = if place == 2 { address } else { Ipv4Addr::LOCALHOST };
        listeners.push(TcpListener::bind((at, 0)).context("no port is free")?);
    }
    let ports: Vec<u16> = listeners.iter().filter_map(|one| Some(one.local_addr().ok()?.port())).collect();
    ports.try_into().ok().context("no port is free")
}

fn put(place: &Mutex<Option<Program>>, program: Option<Program>) {
    *place.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = program;
}
