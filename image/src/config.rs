//! The configuration of the image: entrypoint, user, ports and volumes. The Dockerfile has the same.

use serde_json::{Map, Value, json};

/// The user and the group that the program runs as. Not root, and a number: a cluster that demands non-root pods
/// must see it without reading the image's `/etc/passwd`.
pub const USER: u32 = 65532;

/// The path of the supervisor, the default entrypoint.
pub const PROGRAM: &str = "usr/local/bin/caipe-supervisor";

/// The path of the operator, which the chart starts.
pub const OPERATOR: &str = "usr/local/bin/caipe-operator";

/// The image's name in its registry; the chart's.
pub const NAME: &str = concat!("ghcr.io/caipe-io/caipe-operator:", env!("CARGO_PKG_VERSION"));

/// Further names of the supervisor's program, under which upstream's images start it.
pub const OTHER_NAMES: [&str; 2] = ["platform-engineer", "platform-engineer-single"];

/// The only directory besides `/tmp` that the program writes to; for a volume.
pub const DATA: &str = "data";

/// The port of the supervisor and of an agent.
pub const PORT: u16 = 8000;

/// The default command; an agent is `agent NAME` with the same flags.
pub const COMMAND: [&str; 5] = ["serve", "--listen", "[::]:8000", "--data-dir", "/data"];

/// The version and the revision on the image's labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub version: String,
    /// The commit of the programs, if known.
    pub revision: Option<String>,
}

/// The labels of the supervisor's image.
pub fn labels(about: &About) -> Map<String, Value> {
    let known = [
        ("title", "caipe-operator"),
        (
            "description",
            "CAIPE for Kubernetes: the operator, the supervisor that answers people over A2A, and its agents",
        ),
        ("licenses", env!("CARGO_PKG_LICENSE")),
        ("source", env!("CARGO_PKG_REPOSITORY")),
        ("version", &about.version),
    ];
    let revision = about.revision.as_deref().map(|revision| ("revision", revision));
    annotations(known.into_iter().chain(revision))
}

/// Labels under their standard names (`org.opencontainers.image.*`, OCI image-spec 1.1, annotations).
pub fn annotations<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    let label = |(name, value): (&str, &str)| (format!("org.opencontainers.image.{name}"), value.into());
    pairs.into_iter().map(label).collect()
}

/// How an image is run. All run as [`USER`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    pub entrypoint: Vec<String>,
    /// The default arguments.
    pub command: Vec<String>,
    /// Variables, as `NAME=VALUE`.
    pub env: Vec<String>,
    /// The working directory.
    pub directory: String,
    /// The ports that it listens on.
    pub ports: Vec<u16>,
    /// The directory for a volume.
    pub volumes: Vec<String>,
}

impl Run {
    pub fn supervisor() -> Self {
        let data = format!("/{DATA}");
        Self {
            entrypoint: vec![format!("/{PROGRAM}")],
            command: COMMAND.map(str::to_owned).to_vec(),
            env: vec!["PATH=/usr/local/bin".to_owned(), "HOME=/tmp".to_owned()],
            directory: data.clone(),
            ports: vec![PORT],
            volumes: vec![data],
        }
    }

    /// The `config` member of the image's configuration (OCI image-spec 1.1, config.md).
    pub fn config(&self, labels: &Map<String, Value>) -> Value {
        let ports = self.ports.iter().map(|port| (format!("{port}/tcp"), json!({})));
        let volumes = self.volumes.iter().map(|path| (path.clone(), json!({})));
        json!({
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": ports.collect::<Map<_, _>>(),
            "Env": self.env,
            "Entrypoint": self.entrypoint,
            "Cmd": self.command,
            "Volumes": volumes.collect::<Map<_, _>>(),
            "WorkingDir": self.directory,
            "Labels": labels,
        })
    }
}

/// The `config` member of the supervisor's image.
pub fn run(about: &About) -> Value {
    Run::supervisor().config(&labels(about))
}
