//! A way into a cluster whose network this machine is not part of: `kubectl port-forward`, restarted whenever it ends.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::process::Command;

use crate::cluster::namespace::TestNamespace;

/// The delay before a restart of the forward.
const AGAIN: Duration = Duration::from_millis(200);

/// A port of this machine that leads to a Service, as long as this is there.
#[derive(Debug)]
pub struct Forward {
    /// The port on 127.0.0.1.
    pub port: u16,
    work: tokio::task::JoinHandle<()>,
}

impl Forward {
    /// A way to this port of a Service.
    pub fn to(space: &TestNamespace, service: &str, port: u16) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
        let here = listener.local_addr()?.port();
        let arguments = [
            "--namespace".to_owned(),
            space.namespace.clone(),
            "port-forward".to_owned(),
            format!("service/{service}"),
            format!("{here}:{port}"),
        ];
        let admin = space.admin.clone();
        let work = tokio::spawn(async move {
            loop {
                if let Ok(command) = admin.command("kubectl") {
                    let mut command = Command::from(command);
                    command.args(&arguments).stdin(Stdio::null()).stdout(Stdio::null());
                    drop(command.stderr(Stdio::null()).kill_on_drop(true).status().await);
                }
                tokio::time::sleep(AGAIN).await;
            }
        });
        Ok(Self { port: here, work })
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.work.abort();
    }
}
