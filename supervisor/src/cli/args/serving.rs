//! The flags of a server: a supervisor, or one agent.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use caipe_net::AllowList;
use clap::ArgAction;

use super::Signing;
use crate::run::LOG_MEMORY;

/// The flags of a server.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Serving {
    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8000, for an agent 127.0.0.1:4000]
    #[arg(long, env = "CAIPE_LISTEN")]
    pub(in crate::cli) listen: Option<SocketAddr>,

    /// The host part of --listen, which beats it
    // No conflict: an image may set the variable, and a flag must still work there.
    #[arg(long, env = "A2A_HOST", value_parser = host)]
    pub(in crate::cli) host: Option<IpAddr>,

    /// The port part of --listen, which beats it
    #[arg(long, env = "A2A_PORT")]
    pub(in crate::cli) port: Option<u16>,

    /// The directory of conversations
    #[arg(long, env = "CAIPE_DATA_DIR", default_value = ".caipe")]
    pub(in crate::cli) data_dir: PathBuf,

    /// A file to write the address to, once it is bound
    #[arg(long, env = "CAIPE_ADDRESS_FILE")]
    pub(in crate::cli) address_file: Option<PathBuf>,

    /// Where to serve metrics at /metrics, without authentication, e.g. 127.0.0.1:9090 [default: nowhere]
    #[arg(long, env = "CAIPE_METRICS_ADDRESS")]
    pub(in crate::cli) metrics_address: Option<SocketAddr>,

    /// Listen beyond loopback without authentication: everybody who reaches the address may send requests
    #[arg(long, env = "CAIPE_ALLOW_UNAUTHENTICATED", value_parser = clap::builder::BoolishValueParser::new())]
    pub(in crate::cli) allow_unauthenticated: bool,

    /// A web origin whose pages may send requests, e.g. <http://localhost:3000>; may be given more than once
    #[arg(long = "cors-origin", env = "CAIPE_CORS_ORIGINS", value_delimiter = ',')]
    pub(in crate::cli) cors_origins: Vec<String>,

    /// Delete ended tasks and unused conversations after this many days; 0 keeps them [default: spec.store.retentionDays, or 30]
    #[arg(long, env = "CAIPE_KEEP_DAYS", value_parser = clap::value_parser!(u32).range(..=36500))]
    pub(in crate::cli) keep_days: Option<u32>,

    /// Reject a question that nobody has answered after this many hours; 0 waits for ever. An agent waits for its supervisor
    #[arg(long, env = "CAIPE_ANSWER_HOURS", default_value = "24")]
    pub(in crate::cli) answer_hours: u32,

    /// The memory for the events of tasks, in MiB; clients that read older events get the task instead
    #[arg(long, env = "CAIPE_LOG_MEMORY_MIB", default_value_t = LOG_MEMORY >> 20, value_parser = mebibytes)]
    pub(in crate::cli) log_memory_mib: usize,

    /// How long a run may take before the model must answer from what it has, in seconds
    #[arg(long, env = "CAIPE_RUN_TIMEOUT", default_value = "1800", value_parser = seconds)]
    pub(in crate::cli) run_timeout: Duration,

    #[command(flatten)]
    pub(in crate::cli) push: PushSwitch,

    /// Receivers of push notifications that are allowed although they are not public: hosts, *.domains, addresses and
    /// networks, separated by commas; all but networks may have a :port
    #[arg(long, env = "CAIPE_PUSH_ALLOW", default_value = "", hide_default_value = true)]
    pub(in crate::cli) push_allow: AllowList,

    /// How long the server retries a receiver of push notifications that fails, in seconds
    #[arg(long, env = "CAIPE_PUSH_GIVE_UP", default_value = "3600", value_parser = seconds)]
    pub(in crate::cli) push_give_up: Duration,

    /// How long running tasks may take to end after SIGTERM, in seconds
    #[arg(long, env = "CAIPE_SHUTDOWN_GRACE", default_value = "20", value_parser = seconds)]
    pub(in crate::cli) grace: Duration,

    #[command(flatten)]
    pub(in crate::cli) signing: Signing,
}

/// Whether the server offers push notifications, which the card announces.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(in crate::cli) struct PushSwitch {
    /// Send updates of tasks to URLs that clients name (A2A push notifications)
    #[arg(
        long = "push",
        id = "push",
        env = "CAIPE_PUSH",
        default_value = "on",
        value_name = "on|off",
        action = ArgAction::Set,
        value_parser = on_or_off
    )]
    pub(in crate::cli) on: bool,
}

impl Serving {
    /// The address to listen on; `port` is the default port.
    pub(in crate::cli) fn address(&self, port: u16) -> SocketAddr {
        let host = self.host.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        self.listen.unwrap_or_else(|| SocketAddr::new(host, self.port.unwrap_or(port)))
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text.to_lowercase().as_str() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err("give on or off".to_owned()),
    }
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Few enough that the bytes are a number of this machine.
fn mebibytes(text: &str) -> Result<usize, String> {
    const MOST: usize = 1 << 20;
    let given = text.parse().ok().filter(|mib| (1..=MOST).contains(mib));
    given.ok_or_else(|| format!("give a number of MiB from 1 to {MOST}"))
}

fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        other => other.parse().map_err(|_| "give an IP address, e.g. :: or 0.0.0.0".to_owned()),
    }
}
