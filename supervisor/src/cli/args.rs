//! What can be said on the command line. Every flag has an environment variable.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use caipe_a2a::net::AllowList;
use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use secrecy::SecretString;

use super::conformance::Conformance;
use super::signing::Signing;
use crate::telemetry::LogFormat;

/// CAIPE: one supervisor that answers people over A2A and runs its agents.
#[derive(Debug, Parser)]
#[command(name = "caipe-supervisor", version, propagate_version = true)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,

    /// What to log, in the syntax of `RUST_LOG`
    #[arg(
        long,
        global = true,
        env = "RUST_LOG",
        default_value = "warn,caipe_supervisor=info",
        hide_default_value = true
    )]
    pub(super) log: String,

    /// How log lines look
    #[arg(long, global = true, env = "CAIPE_LOG_FORMAT", value_enum, default_value_t)]
    pub(super) log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one, made when the program starts")]
pub(super) enum Command {
    /// Serve the supervisor over A2A
    #[command(aliases = ["platform-engineer", "platform-engineer-single"])]
    Serve(Serve),
    /// Talk to a supervisor, or any A2A agent, in the terminal
    Chat(Chat),
    /// Print the agent card as JSON
    Card(Card),
    /// List the agents, where each one runs and what it needs
    Agents(Agents),
    /// Check a CaipeSupervisor file: prints every fault with its path
    Check(Check),
    /// Evaluate a jq program in a process of its own (used by the tool `jq`)
    #[command(hide = true)]
    JqEval,
}

#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    /// A CaipeSupervisor resource; without it the core agents run
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    /// Where to listen; port 0 takes a free one [default: 127.0.0.1:8000]
    #[arg(long, env = "CAIPE_LISTEN")]
    pub(super) listen: Option<SocketAddr>,

    /// The host part of --listen, as upstream spells it; --listen beats it
    // No conflict: an image may set the variable, and a flag must still work there.
    #[arg(long, env = "A2A_HOST", hide = true, value_parser = host)]
    pub(super) host: Option<IpAddr>,

    /// The port part of --listen, as upstream spells it; --listen beats it
    #[arg(long, env = "A2A_PORT", hide = true)]
    pub(super) port: Option<u16>,

    /// Where conversations are kept
    #[arg(long, env = "CAIPE_DATA_DIR", default_value = ".caipe")]
    pub(super) data_dir: PathBuf,

    /// A file to write the address to, once it is bound
    #[arg(long, env = "CAIPE_ADDRESS_FILE")]
    pub(super) address_file: Option<PathBuf>,

    /// Listen beyond loopback though anybody may then come in
    #[arg(long, env = "CAIPE_ALLOW_UNAUTHENTICATED", value_parser = clap::builder::BoolishValueParser::new())]
    pub(super) allow_unauthenticated: bool,

    /// A web origin whose pages may call, e.g. <http://localhost:3000>; may be given more than once
    #[arg(long = "cors-origin", env = "CAIPE_CORS_ORIGINS", value_delimiter = ',')]
    pub(super) cors_origins: Vec<String>,

    /// Forget ended tasks and untouched conversations after so many days; 0 keeps them
    #[arg(long, env = "CAIPE_KEEP_DAYS", default_value = "0")]
    pub(super) keep_days: u32,

    /// How long a run may take before it is told to answer from what it has, in seconds
    #[arg(long, env = "CAIPE_RUN_TIMEOUT", default_value = "1800", value_parser = seconds)]
    pub(super) run_timeout: Duration,

    #[command(flatten)]
    pub(super) push: PushSwitch,

    /// What of them may be reached though it is not public: hosts, *.domains, addresses and networks, with commas
    /// between them, each but a network with :port if need be
    #[arg(long, env = "CAIPE_PUSH_ALLOW", default_value = "", hide_default_value = true)]
    pub(super) push_allow: AllowList,

    /// How long a receiver of push notifications may fail on end before it is given up, in seconds
    #[arg(long, env = "CAIPE_PUSH_GIVE_UP", default_value = "3600", value_parser = seconds)]
    pub(super) push_give_up: Duration,

    /// How long running answers get to end when the process is told to stop, in seconds
    #[arg(long, env = "CAIPE_SHUTDOWN_GRACE", default_value = "20", value_parser = seconds)]
    pub(super) grace: Duration,

    #[command(flatten)]
    pub(super) signing: Signing,

    #[command(flatten)]
    pub(super) conformance: Conformance,
}

/// Whether push notifications are offered: what the card announces is what is served.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct PushSwitch {
    /// Tell web addresses that clients name how their tasks go on (A2A push notifications)
    #[arg(
        long = "push",
        id = "push",
        env = "CAIPE_PUSH",
        default_value = "on",
        value_name = "on|off",
        action = ArgAction::Set,
        value_parser = clap::builder::BoolishValueParser::new()
    )]
    pub(super) on: bool,
}

impl Serve {
    /// Where to listen.
    pub(super) fn address(&self) -> SocketAddr {
        let host = self.host.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        self.listen.unwrap_or_else(|| SocketAddr::new(host, self.port.unwrap_or(8000)))
    }
}

#[derive(Debug, clap::Args)]
pub(super) struct Chat {
    /// What to ask; without it, a conversation line by line
    pub(super) message: Vec<String>,

    /// The agent's base URL
    #[arg(long, env = "CAIPE_URL", default_value = "http://127.0.0.1:8000")]
    pub(super) url: String,

    /// The conversation to go on with
    #[arg(long, env = "CAIPE_CONTEXT")]
    pub(super) context: Option<String>,

    /// The bearer token that the agent asks for
    #[arg(long, env = "A2A_AUTH_SHARED_KEY", hide_env_values = true)]
    pub(super) token: Option<SecretString>,

    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,

    /// Say by which trace id the run can be found
    #[arg(long)]
    pub(super) trace: bool,

    /// No color, as with the variable `NO_COLOR`
    #[arg(long)]
    pub(super) no_color: bool,
}

/// What `chat` prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Output {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, an event each.
    Json,
}

#[derive(Debug, clap::Args)]
pub(super) struct Card {
    /// A CaipeSupervisor resource; without it the core agents
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    /// The URL that the card names
    #[arg(long, default_value = "http://127.0.0.1:8000/")]
    pub(super) url: String,

    /// Print the public key of --card-signing-key instead, as a JSON Web Key Set
    #[arg(long)]
    pub(super) keys: bool,

    #[command(flatten)]
    pub(super) push: PushSwitch,

    #[command(flatten)]
    pub(super) signing: Signing,
}

#[derive(Debug, clap::Args)]
pub(super) struct Agents {
    /// A CaipeSupervisor resource; without it the core agents
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// The CaipeSupervisor file
    #[arg(short, long)]
    pub(super) file: PathBuf,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "give a number of seconds".to_owned())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn host(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        other => other.parse().map_err(|_| "give an IP address, e.g. 0.0.0.0".to_owned()),
    }
}
