//! The namespaced name of a supervisor.

use std::borrow::Borrow;
use std::fmt;
use std::sync::{Arc, LazyLock};

use kube::ResourceExt;

use crate::interner::Interner;

/// The namespace and name of a `CaipeSupervisor`. Clones share one text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// `namespace/name`; neither part has a `/`.
    text: Arc<str>,
}

impl Key {
    pub fn new(namespace: &str, name: &str) -> Self {
        static KEYS: LazyLock<Interner<str>> = LazyLock::new(Interner::default);
        Self { text: KEYS.share(format!("{namespace}/{name}")) }
    }

    /// The key of a resource.
    pub fn of(resource: &impl ResourceExt) -> Self {
        Self::new(&resource.namespace().unwrap_or_default(), &resource.name_any())
    }

    pub fn namespace(&self) -> &str {
        self.text.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.text.split_once('/').map_or("", |(_, name)| name)
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
