//! A network namespace for a cluster: no address of a pod ever meets the machine's own network.
//!
//! A thread that has entered it has it for everything: its sockets, the processes and threads that it starts.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The node's address: the API server and the name server are here.
pub const NODE: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);

/// A bridge that the pods are plugged into. The line at the end says that all of it is there.
const MAKE: &str = "
ip link set lo up
ip link add pods type bridge
ip addr add 10.244.0.1/16 dev pods
ip link set pods up
echo made
cat >/dev/null
";

/// A network namespace, which is there as long as this is or a process runs in it.
#[derive(Debug)]
pub struct Network {
    namespace: File,
}

impl Network {
    /// A new one. The error says what is missing here: root, or `ip` of iproute2.
    pub fn new() -> Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "only root may make a network namespace");
        let mut maker = Command::new("unshare");
        maker.args(["--net", "sh", "-e", "-c", MAKE]);
        maker.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut maker = maker.spawn().context("failed to run unshare")?;
        let mut line = String::new();
        BufReader::new(maker.stdout.take().context("no output")?).read_line(&mut line)?;
        let namespace = File::open(format!("/proc/{}/ns/net", maker.id()));
        drop(maker.stdin.take());
        let output = maker.wait_with_output()?;
        let reason = || {
            format!("failed to make a network namespace: {}", String::from_utf8_lossy(&output.stderr).trim())
        };
        ensure!(line == "made\n", reason());
        Ok(Self { namespace: namespace? })
    }

    /// The same one.
    pub fn again(&self) -> Result<Self> {
        Ok(Self { namespace: self.namespace.try_clone()? })
    }

    /// Moves this thread into it.
    pub fn enter(&self) -> Result<()> {
        move_into_link_name_space(self.namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .context("failed to enter the network namespace")
    }
}
