//! How the image is run: what an engine is told, and what the Dockerfile says too.

use serde_json::{Map, Value, json};

/// The user and the group that the program runs as. Not root, and a number: a cluster that demands non-root pods
/// must see it without reading the image's `/etc/passwd`.
pub const USER: u32 = 65532;

/// Where the supervisor lies, which starts if nothing else is said.
pub const PROGRAM: &str = "usr/local/bin/caipe-supervisor";

/// Where the operator lies. The chart starts it by this path.
pub const OPERATOR: &str = "usr/local/bin/caipe-operator";

/// The image's name in its registry; the chart's.
pub const NAME: &str = concat!("ghcr.io/caipe-io/caipe-operator:", env!("CARGO_PKG_VERSION"));

/// Further names of the supervisor; each starts the server (FR-011 of the unification seed).
pub const OTHER_NAMES: [&str; 2] = ["platform-engineer", "platform-engineer-single"];

/// The one place, besides `/tmp`, that the program writes to; for a volume.
pub const DATA: &str = "data";

/// The port of the supervisor and of an agent.
pub const PORT: u16 = 8000;

/// What runs if nothing else is said; an agent is `agent NAME` and the same flags.
pub const COMMAND: [&str; 5] = ["serve", "--listen", "0.0.0.0:8000", "--data-dir", "/data"];

/// What an image says of itself and its programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// The programs' version.
    pub version: String,
    /// The commit that they were built from, if known.
    pub revision: Option<String>,
    /// When that was made, in RFC 3339; nothing in the image depends on when it was packed.
    pub created: Option<String>,
}

/// The labels (`org.opencontainers.image.*`, OCI image-spec 1.1, annotations).
pub fn labels(about: &About) -> Map<String, Value> {
    let mut labels = Map::new();
    let mut label = |name: &str, value: &str| {
        labels.insert(format!("org.opencontainers.image.{name}"), value.into());
    };
    label("title", "caipe-operator");
    label(
        "description",
        "CAIPE for Kubernetes: the operator, the supervisor that answers people over A2A, and its agents",
    );
    label("licenses", env!("CARGO_PKG_LICENSE"));
    label("source", env!("CARGO_PKG_REPOSITORY"));
    label("version", &about.version);
    if let Some(revision) = &about.revision {
        label("revision", revision);
    }
    labels
}

/// The `config` member of the image's configuration (OCI image-spec 1.1, config.md).
pub fn run(about: &About) -> Value {
    json!({
        "User": format!("{USER}:{USER}"),
        "ExposedPorts": { format!("{PORT}/tcp"): {} },
        "Env": ["PATH=/usr/local/bin", "HOME=/tmp"],
        "Entrypoint": [format!("/{PROGRAM}")],
        "Cmd": COMMAND,
        "Volumes": { format!("/{DATA}"): {} },
        "WorkingDir": format!("/{DATA}"),
        "Labels": labels(about),
    })
}
