//! What the containers of a pod share: an address, and a network with a loopback of its own.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cluster::child_process::{Processes, Program};

/// Holds the network as long as it runs.
const HOLD: &str = "ip link set lo up; exec sleep infinity";

/// Plugs the network of process `$1` into the bridge by the cable `$2`, with the address `$3`.
const PLUG: &str = r#"
until [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add "$2" type veth peer name eth0 netns "$1"
ip link set "$2" master pods up
nsenter "--net=/proc/$1/ns/net" sh -e -c '
  ip addr add "$0/16" dev eth0
  ip link set eth0 up
  ip route add default via "$1"' "$3" "$4"
"#;

/// What a container sees of the machine's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) source: PathBuf,
    pub(super) target: String,
    pub(super) writable: bool,
}

/// What is run in a container.
#[derive(Debug, Clone)]
pub(super) struct Run {
    pub(super) name: String,
    pub(super) command: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) mounts: Vec<Mount>,
    /// `USER:GROUP`
    pub(super) user: String,
}

/// The network of a pod, until it is dropped.
#[derive(Debug)]
pub(super) struct Sandbox {
    holder: Program,
    dir: PathBuf,
    programs: PathBuf,
}

impl Sandbox {
    /// A network with this address; `dir` is the pod's, `programs` where our programs are.
    pub(super) fn new(
        processes: &Processes,
        name: &str,
        place: (&Path, &Path),
        address: Ipv4Addr,
    ) -> Result<Self> {
        let mut hold = Command::new("unshare");
        let holder =
            processes.start(&format!("{name}/sandbox"), hold.args(["--net", "sh", "-e", "-c", HOLD]))?;
        let [.., third, last] = address.octets();
        let cable = format!("pod{third}-{last}");
        let mut plug = Command::new("sh");
        plug.args(["-e", "-c", PLUG, "plug", &holder.pid().to_string(), &cable, &address.to_string()]);
        let done = plug.arg(super::super::network::NODE.to_string()).output().context("failed to run sh")?;
        ensure!(done.status.success(), "failed to plug {name} in: {}", String::from_utf8_lossy(&done.stderr));
        Ok(Self { holder, dir: place.0.to_path_buf(), programs: place.1.to_path_buf() })
    }

    /// Starts a container's program.
    pub(super) fn start(&self, processes: &Processes, log: &str, run: &Run) -> Result<Program> {
        let root = self.dir.join("roots").join(&run.name);
        std::fs::create_dir_all(&root)?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cluster/node/container.sh");
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.holder.pid())).args(["unshare", "--mount", "sh"]);
        command.arg(script).arg(root).arg(&run.user).arg(&self.programs);
        for mount in &run.mounts {
            command.arg(&mount.source).arg(&mount.target).arg(if mount.writable { "rw" } else { "ro" });
        }
        command.arg("--").args(&run.command).env_clear().envs(&run.env);
        processes.start(log, &mut command)
    }
}
