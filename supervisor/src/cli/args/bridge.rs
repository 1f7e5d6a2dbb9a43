//! The flags of `mcp-bridge` and `install`, for tool servers in the pod of an agent.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

/// A tool server on stdio, served over HTTP.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct McpBridge {
    /// Where to listen: an address of loopback, or any address if there is a key of clients; port 0 takes a free one
    #[arg(long, env = "CAIPE_BRIDGE_LISTEN")]
    pub(in crate::cli) listen: SocketAddr,

    /// The path of the endpoint
    #[arg(long, env = "CAIPE_BRIDGE_PATH", default_value = "/mcp", value_parser = path)]
    pub(in crate::cli) path: String,

    /// The most sessions at a time; each has its own process
    #[arg(
        long,
        env = "CAIPE_BRIDGE_MAX_SESSIONS",
        default_value = "16",
        value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024)
    )]
    pub(in crate::cli) max_sessions: usize,

    /// A variable for the server, besides this environment; its value and the arguments may contain ${VAR}
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(in crate::cli) variables: Vec<(String, String)>,

    /// A directory with one file per variable, read before the environment; may be given more than once
    #[arg(long = "secrets-dir", value_name = "DIR")]
    pub(in crate::cli) secrets: Vec<String>,

    /// Where the server runs
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) cwd: Option<String>,

    /// A file to write the address to, once it is bound
    #[arg(long, env = "CAIPE_ADDRESS_FILE")]
    pub(in crate::cli) address_file: Option<PathBuf>,

    /// The server: a program and its arguments, which may name variables as ${VAR}
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<String>,
}

/// Copies this program.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Install {
    /// The file, which is replaced atomically
    pub(in crate::cli) path: PathBuf,
}

fn path(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/-._~".contains(c);
    let fine = text.starts_with('/') && text.chars().all(plain);
    if fine { Ok(text.to_owned()) } else { Err("give a path such as /mcp".to_owned()) }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("give NAME=VALUE".to_owned()),
    }
}
