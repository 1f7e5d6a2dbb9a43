//! The API of the use of the processor (`metrics.k8s.io`), which autoscalers read, served by a stand-in on the node.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tempfile::TempDir;

use super::Live;
use crate::programs::workspace;
use crate::supervisor::until;

/// The name of its Service.
const NAME: &str = "metrics";
const API: &str = "v1beta1.metrics.k8s.io";

/// The running stand-in. It ends when it is dropped; [`MetricsApi::stop`] also removes it from the API server.
#[derive(Debug)]
pub struct MetricsApi {
    child: Child,
    _certificate: TempDir,
}

impl MetricsApi {
    /// Starts the stand-in at an address of the node, and waits until the API server serves it.
    pub async fn start(live: &Live, address: &str) -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let [key, certificate] = ["key.pem", "certificate.pem"].map(|name| directory.path().join(name));
        let make = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=metrics"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .context("failed to run openssl")?;
        ensure!(make.status.success(), "openssl: {}", String::from_utf8_lossy(&make.stderr));
        let mut child = Command::new("python3")
            .arg(workspace().join("fixtures/metrics-peer/server.py"))
            .arg(address)
            .args([&certificate, &key])
            .env("KUBECONFIG", &live.admin.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("failed to start the metrics API")?;
        let mut port = String::new();
        BufReader::new(child.stdout.take().context("no output")?).read_line(&mut port)?;
        let port: u16 = port.trim().parse().context("the metrics API did not start")?;
        let api = Self { child, _certificate: directory };
        live.serve_metrics(address, port)?;
        let path = "/apis/metrics.k8s.io/v1beta1";
        let is_served = async || Ok(live.kubectl(&["get", "--raw", path]).is_ok());
        until("the API server serves the metrics", is_served).await?;
        Ok(api)
    }

    /// Removes the API: while it does not respond, no namespace can be deleted.
    pub fn stop(mut self, live: &Live) -> Result<()> {
        live.kubectl(&["delete", "apiservice", API])?;
        drop(self.child.stdin.take());
        self.child.wait().map(drop).context("failed to stop the metrics API")
    }
}

impl Drop for MetricsApi {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Live {
    /// Makes the API server pass requests for the metrics on to this address.
    fn serve_metrics(&self, address: &str, port: u16) -> Result<()> {
        self.apply(&json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": NAME},
            "spec": {"ports": [{"port": 443, "targetPort": port}]}}))?;
        self.apply(&json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": NAME, "labels": {"kubernetes.io/service-name": NAME}},
            "endpoints": [{"addresses": [address]}], "ports": [{"port": port, "protocol": "TCP", "name": ""}]}))?;
        let (group, version) = ("metrics.k8s.io", "v1beta1");
        self.apply(&json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": API},
            "spec": {"group": group, "version": version, "groupPriorityMinimum": 100, "versionPriority": 100,
                "insecureSkipTLSVerify": true, "service": {"name": NAME, "namespace": self.namespace, "port": 443}}}))
            .map(drop)
    }
}
