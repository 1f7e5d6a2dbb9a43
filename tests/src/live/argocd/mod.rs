//! Argo CD: its application controller and its repo server with a Redis, as processes of this machine that work on the
//! cluster; and the Git repository that it keeps the cluster like.

mod applications;
mod repository;

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::Live;
use crate::cluster::assets;
use crate::cluster::namespace::TestNamespace;
use crate::programs::workspace;
use crate::supervisor::until;

pub use applications::{OPERATOR, SUPERVISORS, health, is_healthy, syncs};
pub use repository::Repository;

/// The namespace of Argo CD's own objects.
const NAMESPACE: &str = "argocd";
/// What its programs keep in Redis.
const REDIS: &str = "redis-server";
/// What renders manifests.
const REPO_SERVER: &str = "argocd-repo-server";
/// What compares and applies them.
const CONTROLLER: &str = "argocd-application-controller";
/// Seconds between two looks at the repository.
const RESYNC: &str = "5";

/// Argo CD, as long as this is there.
#[allow(missing_debug_implementations, reason = "a client has none")]
pub struct ArgoCd {
    space: TestNamespace,
    directory: PathBuf,
    programs: Vec<Child>,
}

impl ArgoCd {
    /// Whether its program was built.
    pub fn is_built() -> bool {
        assets::find("argocd").is_some()
    }

    /// Brings its definitions and settings into the cluster, ours for health as our documentation says, and starts its
    /// programs. They log into `directory`.
    pub async fn begin(live: &Live, directory: &Path) -> Result<Self> {
        let space = live.in_namespace(NAMESPACE);
        let mut argo = Self { space, directory: directory.to_owned(), programs: Vec::new() };
        argo.settle_in().await?;
        let (redis, repo) = (free_port()?, free_port()?);
        argo.start_redis(redis)?;
        argo.start_repo_server(redis, repo)?;
        argo.start_controller(redis, repo)?;
        Ok(argo)
    }

    /// The ends of its programs' logs.
    pub fn logs(&self) -> String {
        let tail = |program: &str| {
            let text = std::fs::read_to_string(self.log(program)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!(
                "{program}:\n{}",
                lines.get(lines.len().saturating_sub(20)..).unwrap_or_default().join("\n")
            )
        };
        [REPO_SERVER, CONTROLLER].map(tail).join("\n")
    }

    /// Stops its programs and takes what is in the cluster away.
    pub async fn end(mut self) -> Result<()> {
        for program in &mut self.programs {
            program.kill().await.context("failed to stop a program of Argo CD")?;
        }
        self.space.kubectl(&["delete", "namespace", NAMESPACE])?;
        self.space.kubectl(&["delete", "--kustomize", &definitions()?]).map(drop)
    }

    async fn settle_in(&self) -> Result<()> {
        // Too large for an annotation of client-side apply.
        self.space.kubectl(&["apply", "--server-side", "--kustomize", &definitions()?])?;
        // kubectl waits for no condition of what has none at all yet.
        let kinds = ["applications.argoproj.io", "appprojects.argoproj.io"];
        let there = async || Ok(kinds.iter().all(|kind| self.space.kubectl(&["get", kind]).is_ok()));
        until("Argo CD's kinds are there", there).await?;
        self.space
            .apply(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}))?;
        for settings in ["rbac-cm", "cmd-params-cm", "gpg-keys-cm", "ssh-known-hosts-cm", "tls-certs-cm"] {
            self.space.apply(&own("v1", "ConfigMap", &format!("argocd-{settings}"), json!({"data": {}})))?;
        }
        let key = json!({"stringData": {"server.secretkey": "for this test alone"}});
        self.space.apply(&own("v1", "Secret", "argocd-secret", key))?;
        let health = workspace().join("deploy/argocd/argocd-cm.yaml");
        let health = health.to_string_lossy();
        self.space.kubectl(&["apply", "--server-side", "--field-manager", "caipe", "-f", &health])?;
        let everything = json!({"spec": {"sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}],
            "clusterResourceWhitelist": [{"group": "*", "kind": "*"}]}});
        self.space.apply(&own("argoproj.io/v1alpha1", "AppProject", "default", everything)).map(drop)
    }

    fn start_redis(&mut self, port: u16) -> Result<()> {
        let mut command = Command::new(REDIS);
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.arg("--dir").arg(&self.directory);
        self.start(REDIS, command)
    }

    fn start_repo_server(&mut self, redis: u16, port: u16) -> Result<()> {
        let mut command = self.program(REPO_SERVER)?;
        command.args(["--address", "127.0.0.1", "--port", &port.to_string(), "--disable-tls"]);
        command.args(["--metrics-address", "127.0.0.1", "--metrics-port", &free_port()?.to_string()]);
        command.args(["--redis", &local(redis), "--revision-cache-expiration", "1s"]);
        command.env("ARGOCD_GPG_ENABLED", "false").env("TMPDIR", &self.directory);
        command.env("ARGOCD_ASK_PASS_SOCK", self.directory.join("ask-pass.sock"));
        self.start(REPO_SERVER, command)
    }

    fn start_controller(&mut self, redis: u16, repo: u16) -> Result<()> {
        let mut command = self.program(CONTROLLER)?;
        command.args(["--namespace", NAMESPACE, "--repo-server", &local(repo), "--repo-server-plaintext"]);
        command.args(["--redis", &local(redis), "--metrics-port", &free_port()?.to_string()]);
        command.args(["--app-resync", RESYNC, "--app-resync-jitter", "0", "--persist-resource-health"]);
        // The cluster is the one of KUBECONFIG, as if this were a pod of it.
        command.env("ARGOCD_FAKE_IN_CLUSTER", "true");
        self.start(CONTROLLER, command)
    }

    /// One of its programs, which are one: told apart by its name. It finds helm 3, as in its own image.
    fn program(&self, name: &str) -> Result<Command> {
        let place = self.directory.join("bin");
        std::fs::create_dir_all(&place)?;
        let programs = [(name, assets::get("argocd")?), ("helm", assets::get("helm3")?)];
        for (link, target) in programs {
            let link = place.join(link);
            if !link.exists() {
                symlink(target, &link).with_context(|| format!("failed to make {}", link.display()))?;
            }
        }
        let mut command = Command::new(place.join(name));
        let own = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths([place].into_iter().chain(std::env::split_paths(&own)))?;
        command.env_clear().env("PATH", path).env("HOME", &self.directory);
        command.env("KUBECONFIG", &self.space.admin.kubeconfig);
        Ok(command)
    }

    fn start(&mut self, name: &str, mut command: Command) -> Result<()> {
        let log = File::create(self.log(name))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).kill_on_drop(true);
        self.programs.push(command.spawn().with_context(|| format!("failed to start {name}"))?);
        Ok(())
    }

    fn log(&self, program: &str) -> PathBuf {
        self.directory.join(format!("{program}.log"))
    }
}

/// Argo CD's definitions, which were kept when it was built.
fn definitions() -> Result<String> {
    let programs = assets::get("argocd")?;
    let built = programs.parent().and_then(Path::parent).context("argocd is in no directory")?;
    Ok(built.join("argocd/crds").to_string_lossy().into_owned())
}

/// An object of Argo CD's own.
fn own(version: &str, kind: &str, name: &str, rest: Value) -> Value {
    let labels = json!({"app.kubernetes.io/part-of": NAMESPACE});
    let mut object = rest;
    object["apiVersion"] = version.into();
    object["kind"] = kind.into();
    object["metadata"] = json!({"name": name, "namespace": NAMESPACE, "labels": labels});
    object
}

fn local(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}
