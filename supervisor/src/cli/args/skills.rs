//! The flags of `skills`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use secrecy::SecretString;
use url::Url;

use super::{DEFAULT_URL, Output};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SkillsArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: SkillsCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum SkillsCommand {
    /// List the skills of a running supervisor, or of a directory
    List {
        #[command(flatten)]
        place: SkillsPlace,
        /// What to print
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Print the SKILL.md of a skill, and the names of its files
    Show {
        /// The name, or the id, of the skill
        name: String,
        #[command(flatten)]
        place: SkillsPlace,
    },
    /// List the skills whose name or description contains a text
    Search {
        /// The text, in any case
        #[arg(required = true)]
        text: Vec<String>,
        #[command(flatten)]
        place: SkillsPlace,
        /// What to print
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Check skills: prints every fault with its path, and fails if there is one
    Lint {
        /// The folders: of a skill, or of many
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
    },
    /// Add a skill to the catalogue of a running supervisor, or replace it
    Add {
        /// The folder of the skill
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[command(flatten)]
        server: SkillsServer,
        /// Who may read it; the default is personal with a token of a person, and global with the shared key
        #[arg(long, value_enum)]
        visibility: Option<SkillVisibility>,
        /// A team that may read it, with --visibility team; may be repeated
        #[arg(long = "team", value_name = "TEAM")]
        teams: Vec<String>,
    },
}

/// Where the skills are.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SkillsPlace {
    /// A directory with SKILL/SKILL.md, instead of a supervisor
    #[arg(long)]
    pub(in crate::cli) dir: Option<PathBuf>,

    #[command(flatten)]
    pub(in crate::cli) server: SkillsServer,
}

/// A running supervisor.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct SkillsServer {
    /// The base URL of the supervisor
    #[arg(long, env = "CAIPE_URL", default_value = DEFAULT_URL)]
    pub(in crate::cli) url: Url,

    /// The bearer token that the supervisor asks for
    #[arg(long, env = "A2A_AUTH_SHARED_KEY", hide_env_values = true)]
    pub(in crate::cli) token: Option<SecretString>,
}

/// The principals that may read a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum SkillVisibility {
    Global,
    Team,
    Personal,
}
