//! The arguments of the command line.

mod bridge;
mod kb;
mod serving;
mod skills;
mod slack;
mod store;

use std::path::PathBuf;

use caipe_telemetry::LogFormat;
use clap::{Parser, Subcommand, ValueEnum};
use secrecy::SecretString;
use url::Url;

use super::signing::Signing;
pub(super) use bridge::{Install, McpBridge};
pub(super) use kb::{Kb, KbAdd, KbCommand, KbEmbeddings, KbSearch, KbServe};
pub(super) use serving::{PushSwitch, Serving};
pub(super) use skills::{SkillVisibility, SkillsArgs, SkillsCommand, SkillsPlace, SkillsServer};
pub(super) use slack::{Manifest, SlackArgs, SlackCommand};
pub(super) use store::{Source, StoreArgs, StoreCommand, StoreName};

/// Where `chat` looks for an agent.
pub(super) const DEFAULT_URL: &str = "http://127.0.0.1:8000";

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
        default_value = "warn,caipe_supervisor=info,caipe_bridge=info,caipe_slack=info",
        hide_default_value = true
    )]
    pub(super) log: String,

    /// How log lines look
    #[arg(long, global = true, env = "CAIPE_LOG_FORMAT", value_enum, default_value_t)]
    pub(super) log_format: LogFormat,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Serve the supervisor over A2A
    #[command(aliases = ["platform-engineer", "platform-engineer-single"])]
    Serve(Serve),
    /// Serve one agent over A2A, with its own tools
    Agent(Agent),
    /// Talk to a supervisor, or any A2A agent, in the terminal
    Chat(Chat),
    /// Print the agent card as JSON
    Card(Card),
    /// Print the prompt of the supervisor or of an agent, and its tokens
    Prompt(Prompt),
    /// List the agents, where each one runs and what it needs
    Agents(Agents),
    /// Check a CaipeSupervisor file: prints every fault with its path
    Check(Check),
    /// Try what a supervisor does with a set of requests, and compare two specifications
    Eval(Eval),
    /// Serve a tool server that speaks MCP on its stdin and stdout over streamable HTTP, on loopback
    McpBridge(McpBridge),
    /// Index documents and serve them to agents: an embedded knowledge base
    Kb(Kb),
    /// Export, import and compare the stores of conversations: backups, and the way from one store to another
    Store(StoreArgs),
    /// List, check and add the skills that agents use
    Skills(SkillsArgs),
    /// Run the Slack bot of a supervisor, or print the manifest of its Slack app
    Slack(SlackArgs),
    /// Copy this program to a path, for another container to run it from there
    Install(Install),
    /// Evaluate a jq program in a process of its own (used by the tool `jq`)
    #[command(hide = true)]
    JqEval,
    /// Extract the text of a PDF file in a process of its own (used by `kb add`)
    #[command(hide = true)]
    PdfText,
}

#[derive(Debug, clap::Args)]
pub(super) struct Serve {
    /// A CaipeSupervisor resource or a rendered spec, followed while it is served; without it the core agents run
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    #[command(flatten)]
    pub(super) serving: Serving,
}

/// Serves a single agent.
#[derive(Debug, clap::Args)]
pub(super) struct Agent {
    /// The agent: its name in the catalogue or in the file, or the one of the folder
    pub(super) name: String,

    /// A CaipeSupervisor resource or a rendered spec that has the agent; without it the catalogue does
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    /// A folder with IDENTITY.md, and perhaps CONTEXT.md, that says who the agent is
    #[arg(long, env = "CAIPE_IDENTITY", value_name = "DIR")]
    pub(super) identity: Option<PathBuf>,

    /// Print the agent's card as JSON, and serve nothing
    #[arg(long)]
    pub(super) card: bool,

    #[command(flatten)]
    pub(super) serving: Serving,
}

#[derive(Debug, clap::Args)]
pub(super) struct Chat {
    /// What to ask; without it, a conversation line by line
    pub(super) message: Vec<String>,

    /// The agent's base URL
    #[arg(long, env = "CAIPE_URL", default_value = DEFAULT_URL)]
    pub(super) url: String,

    /// The conversation to continue
    #[arg(long, env = "CAIPE_CONTEXT")]
    pub(super) context: Option<String>,

    /// A task to follow again, instead of sending a message
    #[arg(long, conflicts_with = "message")]
    pub(super) task: Option<String>,

    /// The bearer token that the agent asks for
    #[arg(long, env = "A2A_AUTH_SHARED_KEY", hide_env_values = true)]
    pub(super) token: Option<SecretString>,

    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,

    /// Print the trace id of the run
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

/// Tries what a supervisor does with requests.
#[derive(Debug, clap::Args)]
pub(super) struct Eval {
    /// The requests and what they demand; `routing` is the set of the program
    pub(super) cases: String,

    /// A CaipeSupervisor resource; without it the core agents
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    /// A second resource, with another model, other prompts or other agents, to compare
    #[arg(long, value_name = "FILE")]
    pub(super) with: Option<PathBuf>,

    /// The supervisor's model, as NAME or PROVIDER/NAME, instead of those of the resource
    #[arg(long)]
    pub(super) model: Option<String>,

    /// Another model of the supervisor, to compare
    #[arg(long, value_name = "MODEL")]
    pub(super) with_model: Option<String>,

    /// A file with the supervisor's system prompt, instead of that of the resource
    #[arg(long, value_name = "FILE")]
    pub(super) prompt: Option<PathBuf>,

    /// A file with another system prompt, to compare
    #[arg(long, value_name = "FILE")]
    pub(super) with_prompt: Option<PathBuf>,

    /// Let the agents work, with their tools and models; without it each gives a fixed answer
    #[arg(long)]
    pub(super) run: bool,

    /// Seconds that a case may take with --run
    #[arg(long, requires = "run", default_value_t = 300, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) timeout: u32,

    /// Approve each call that needs an approval; without it such calls are rejected
    #[arg(long, requires = "run")]
    pub(super) approve: bool,

    /// The model that judges answers, as NAME or PROVIDER/NAME; by default that of the resource
    #[arg(long, requires = "run", value_name = "MODEL")]
    pub(super) judge: Option<String>,

    /// Cases at the same time
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(super) parallel: u8,

    /// The percentage of the cases that must pass
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(0..=100))]
    pub(super) at_least: u8,

    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,
}

/// What to do with the agents, other than to list them.
#[derive(Debug, Subcommand)]
pub(super) enum AgentsAction {
    /// Start the tool servers of each agent, compare their tools with the specification, and check the credentials with one
    /// call that changes nothing
    Doctor(Doctor),
}

#[derive(Debug, clap::Args)]
pub(super) struct Prompt {
    /// The agent, or `supervisor`
    #[arg(default_value = "supervisor")]
    pub(super) name: String,

    /// A CaipeSupervisor resource; without it the core agents
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(super) struct Doctor {
    /// The agent; without it all
    pub(super) name: Option<String>,

    /// A CaipeSupervisor resource or a rendered spec; without it the core agents
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Agents {
    #[command(subcommand)]
    pub(super) action: Option<AgentsAction>,

    /// A CaipeSupervisor resource; without it the core agents
    #[arg(short, long, env = "CAIPE_FILE")]
    pub(super) file: Option<PathBuf>,

    /// The URL of a running supervisor whose agents to list, instead of a file
    // No conflict with the file: an image may set its variable.
    #[arg(long)]
    pub(super) url: Option<Url>,

    /// The bearer token for that supervisor
    #[arg(long, env = "A2A_AUTH_SHARED_KEY", hide_env_values = true)]
    pub(super) token: Option<SecretString>,

    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,
}

#[derive(Debug, clap::Args)]
pub(super) struct Check {
    /// The CaipeSupervisor file
    #[arg(short, long)]
    pub(super) file: PathBuf,

    /// Check the file as for a cluster: remote agents need no address and tool servers may be containers. The environment
    /// is ignored, and references to objects of the cluster are not checked
    #[arg(long)]
    pub(super) cluster: bool,
}
