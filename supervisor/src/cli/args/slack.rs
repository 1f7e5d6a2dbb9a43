//! The arguments of `slack`.

use std::net::SocketAddr;

use clap::Subcommand;
use secrecy::SecretString;

use super::DEFAULT_URL;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SlackArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: Option<SlackCommand>,

    /// The base URL of the supervisor
    #[arg(long, env = "CAIPE_URL", default_value = DEFAULT_URL)]
    pub(in crate::cli) url: String,

    /// The key of the supervisor
    #[arg(long, env = "A2A_AUTH_SHARED_KEY", hide_env_values = true)]
    pub(in crate::cli) token: Option<SecretString>,

    /// The address for the probes `/health` and `/ready`, and for events over HTTP (`SLACK_BOT_MODE=http`), which Slack must reach
    /// through a proxy with TLS. The default is 127.0.0.1:3000 for events over HTTP, and none in Socket Mode
    #[arg(long, env = "CAIPE_SLACK_LISTEN")]
    pub(in crate::cli) listen: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SlackCommand {
    /// Print the manifest of the Slack app as JSON, to create the app with it
    Manifest(Manifest),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Manifest {
    /// The name of the app
    #[arg(long, env = "SLACK_INTEGRATION_APP_NAME", default_value = "CAIPE")]
    pub(in crate::cli) name: String,

    /// The public URL of the bot, for events over HTTP; without it the app uses Socket Mode
    #[arg(long)]
    pub(in crate::cli) public_url: Option<String>,
}
