//! The flags of `kb`.

use std::net::SocketAddr;
use std::path::PathBuf;

use caipe_kb::MAX_RESULTS;
use caipe_net::AllowList;
use clap::Subcommand;
use clap::builder::RangedU64ValueParser;
use secrecy::SecretString;

use super::Output;

/// The provider of embeddings, which makes the search find other words for the same thing. The flags are global, so each has an
/// id that no field of a command has.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct KbEmbeddings {
    /// Embed documents and queries with this model, for example text-embedding-3-small
    #[arg(
        id = "embeddings-model",
        long = "embeddings-model",
        env = "CAIPE_KB_EMBEDDINGS_MODEL",
        value_name = "MODEL",
        default_value = "",
        hide_default_value = true,
        global = true
    )]
    pub(in crate::cli) model: String,

    /// The base URL of a provider with the API of OpenAI
    #[arg(
        id = "embeddings-url",
        long = "embeddings-url",
        env = "CAIPE_KB_EMBEDDINGS_URL",
        default_value = "https://api.openai.com/v1",
        value_name = "URL",
        global = true
    )]
    pub(in crate::cli) url: String,

    /// The key for the provider
    #[arg(
        id = "embeddings-key",
        long = "embeddings-key",
        env = "CAIPE_KB_EMBEDDINGS_KEY",
        hide_env_values = true,
        value_name = "KEY",
        global = true
    )]
    pub(in crate::cli) key: Option<SecretString>,

    /// The most tokens of documents that an update of a source embeds
    #[arg(
        id = "embeddings-max-tokens",
        long = "embeddings-max-tokens",
        env = "CAIPE_KB_EMBEDDINGS_MAX_TOKENS",
        default_value = "10000000",
        value_name = "TOKENS",
        global = true
    )]
    pub(in crate::cli) max_tokens: u64,
}

/// The embedded knowledge base.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Kb {
    /// The directory of the index
    #[arg(
        long = "kb-dir",
        env = "CAIPE_KB_DIR",
        default_value = ".caipe/knowledge-base",
        value_name = "DIR",
        global = true
    )]
    pub(in crate::cli) directory: PathBuf,

    #[command(flatten)]
    pub(in crate::cli) embeddings: KbEmbeddings,

    #[command(subcommand)]
    pub(in crate::cli) command: KbCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum KbCommand {
    /// Add folders, files, web pages and Git repositories, or update them; without any, update all sources
    Add(KbAdd),
    /// List the sources
    List {
        /// What to print
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Remove sources and their documents
    Remove {
        /// The names of the sources
        #[arg(required = true)]
        names: Vec<String>,
    },
    /// Search the documents
    Search(KbSearch),
    /// Serve `search` and `fetch_document` over MCP, for `RAG_SERVER_URL`
    Serve(KbServe),
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct KbAdd {
    /// Folders and files (Markdown, HTML, PDF, plain text); URLs of web pages; URLs of Git repositories (https://….git,
    /// git+https://…, ssh://…), perhaps with #BRANCH
    pub(in crate::cli) sources: Vec<String>,

    /// The name of a new source, if not that of its folder
    #[arg(long)]
    pub(in crate::cli) name: Option<String>,

    /// Delete the index first and read all sources again
    #[arg(long)]
    pub(in crate::cli) rebuild: bool,

    /// Hosts of pages and repositories that are allowed although they are not public: hosts, *.domains, addresses and
    /// networks, separated by commas; all but networks may have a :port
    #[arg(long, env = "CAIPE_KB_ALLOW", default_value = "", hide_default_value = true)]
    pub(in crate::cli) allow: AllowList,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct KbSearch {
    /// Words or a question
    #[arg(required = true)]
    pub(in crate::cli) query: Vec<String>,

    /// The most results
    #[arg(long, default_value = "5", value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_RESULTS as u64))]
    pub(in crate::cli) limit: usize,

    /// Only documents of this source
    #[arg(long)]
    pub(in crate::cli) source: Option<String>,

    /// What to print
    #[arg(short, long, value_enum, default_value_t)]
    pub(in crate::cli) output: Output,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct KbServe {
    /// Where to listen: an address of loopback, or any address if there is a key; port 0 takes a free one
    #[arg(long, env = "CAIPE_KB_LISTEN", default_value = "127.0.0.1:9446")]
    pub(in crate::cli) listen: SocketAddr,

    /// The key that clients must send as a bearer token
    #[arg(long, env = "CAIPE_KB_KEY", hide_env_values = true)]
    pub(in crate::cli) key: Option<SecretString>,

    /// A file to write the address to, once it is bound
    #[arg(long, env = "CAIPE_ADDRESS_FILE")]
    pub(in crate::cli) address_file: Option<PathBuf>,
}
