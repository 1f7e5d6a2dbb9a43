//! Faults of a resource or an environment variable.

use std::fmt;

/// A fault with its path. Never contains a secret's value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// A path in the resource (`spec.agents[2].name`) or a variable (`$MAX_CONTEXT_TOKENS`).
    pub path: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Fault {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }

    /// A fault in the environment variable `name`.
    pub fn variable(name: &str, message: impl Into<String>) -> Self {
        Self::new(format!("${name}"), message)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// One or more faults, shown one per line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// The list must not be empty.
    pub(crate) const fn new(faults: Vec<Fault>) -> Self {
        Self(faults)
    }

    /// Returns `Err` unless the list is empty.
    pub fn check(faults: Vec<Fault>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self::new(faults)) }
    }

    /// The faults, in the order found.
    pub fn as_slice(&self) -> &[Fault] {
        &self.0
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self(vec![fault])
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::vec::IntoIter<Fault>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Fault::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Faults {}
