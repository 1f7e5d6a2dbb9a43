//! Errors of building.

/// A fault that prevents building the objects. Each message says what to change in the resource.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The resource has no name.
    #[error("failed to build the objects: the resource has no name")]
    Nameless,
    /// No image is set.
    #[error("failed to choose the image: set spec.image, or `image` in the operator's defaults")]
    NoImage,
    /// A remote agent cannot be built.
    #[error("failed to build agent `{agent}`: {reason}")]
    Agent { agent: String, reason: String },
    /// Two tool servers of one pod listen on the same port.
    #[error(
        "failed to put tool servers `{first}` and `{second}` into one pod: both listen on port {port}; \
         give one of them another port, or `placement: Service`"
    )]
    PortTaken {
        port: u16,
        /// The first one, as agent and server.
        first: String,
        second: String,
    },
    /// The rendered spec is too large for a `ConfigMap`.
    #[error(
        "failed to fit the rendered spec into ConfigMap `{config_map}`: it has {bytes} bytes, and {limit} are \
         allowed; shorten system prompts, or take agents out"
    )]
    SpecTooLarge {
        config_map: String,
        bytes: usize,
        /// The most that it may have.
        limit: usize,
    },
    /// The installation's restrictions forbid something.
    #[error(
        "the operator's installation does not allow: {0}; remove it, or ask an administrator of the cluster"
    )]
    Restricted(String),
    /// The rendered spec cannot be serialized.
    #[error("failed to write the rendered spec as YAML: {0}")]
    Yaml(String),
    /// A partial pod template is invalid.
    #[error("failed to apply {path}: {reason}")]
    PodTemplate {
        /// Its path, down to the key if it is known.
        path: String,
        /// What is wrong, and what to do.
        reason: String,
    },
}
