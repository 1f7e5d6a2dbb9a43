//! A real control plane: etcd and the API server, with a directory and credentials of their own. Without controllers, no
//! object changes by itself.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::assets;
use super::child_process::{Processes, Program, tail};
use super::credentials::{self, Access};
use super::namespace::Admin;

/// Longest wait for a program of the control plane to be ready.
const START: Duration = Duration::from_mins(2);

/// The key that signs the tokens of service accounts.
const SIGNS: &str = "service-accounts.key";
/// The key that checks them.
const CHECKS: &str = "service-accounts.pub";

/// A control plane, until it is dropped or this process ends.
#[derive(Debug)]
pub struct ControlPlane {
    // Stopped in this order: no program outlives its server.
    programs: Vec<Program>,
    access: Access,
    ports: [u16; 3],
    processes: Processes,
}

impl ControlPlane {
    /// Starts one on loopback and waits until the API server is ready.
    pub async fn start() -> Result<Self> {
        let processes = Processes::new()?;
        let ports = free_ports()?;
        let token = credentials::administrator(&processes.dir().join("tokens.csv"))?;
        let [private, public] = [SIGNS, CHECKS].map(|name| processes.dir().join(name));
        credentials::signing_keys(&private, &public)?;
        let access = Access {
            server: format!("https://127.0.0.1:{}", ports[2]),
            authority: processes.dir().join("certificates/apiserver.crt"),
            token,
        };
        let mut this = Self { programs: Vec::new(), access, ports, processes };
        this.launch("etcd", etcd(this.dir(), ports)?)?;
        this.launch_server().await?;
        this.access.write(&this.kubeconfig())?;
        Ok(this)
    }

    /// Ends the API server, and starts it at the same address. It then remembers no earlier version of an object.
    pub async fn restart_server(&mut self) -> Result<()> {
        self.programs.remove(0);
        self.launch_server().await
    }

    async fn launch_server(&mut self) -> Result<()> {
        self.launch("apiserver", self.server_command()?)?;
        let ready = tokio::time::timeout(START, self.until_ready()).await;
        ready.with_context(|| format!("the API server did not become ready:\n{}", self.log()))?
    }

    fn launch(&mut self, name: &str, mut command: Command) -> Result<()> {
        self.programs.insert(0, self.processes.start(name, &mut command)?);
        Ok(())
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

    /// Makes etcd forget every version of an object but the newest.
    pub async fn compact(&self) -> Result<()> {
        let url = |call: &str| format!("http://127.0.0.1:{}/v3/kv/{call}", self.ports[0]);
        let post = async |call: &str, body: Value| -> Result<Value> {
            let answer = reqwest::Client::new().post(url(call)).json(&body).send().await?;
            Ok(answer.error_for_status()?.json().await?)
        };
        let found = post("range", json!({"key": "AA=="})).await?;
        post("compaction", json!({"revision": found["header"]["revision"]})).await.map(drop)
    }

    async fn until_ready(&self) -> Result<()> {
        loop {
            if let Some(status) = self.programs.iter().find_map(Program::ended) {
                bail!("a program of the control plane ended ({status}):\n{}", self.log());
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
        command.arg(format!("--secure-port={}", self.ports[2]));
        for (flag, file) in [
            ("cert-dir", "certificates"),
            ("service-account-key-file", CHECKS),
            ("service-account-signing-key-file", SIGNS),
            ("token-auth-file", "tokens.csv"),
        ] {
            command.arg(format!("--{flag}={}", dir.join(file).display()));
        }
        command.args([
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
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

    /// The last log lines of its programs.
    pub fn log(&self) -> String {
        let text = |name: &str| format!("{name}:\n{}", tail(&self.dir().join(name), 15));
        ["etcd.log", "apiserver.log"].map(text).join("\n")
    }
}

fn etcd(dir: &Path, ports: [u16; 3]) -> Result<Command> {
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

/// Free ports, bound at the same time so that they differ.
fn free_ports() -> Result<[u16; 3]> {
    let bind = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free");
    let listeners = (0..3).map(bind).collect::<Result<Vec<_>>>()?;
    let ports: Vec<u16> = listeners.iter().filter_map(|one| Some(one.local_addr().ok()?.port())).collect();
    ports.try_into().ok().context("no port is free")
}
