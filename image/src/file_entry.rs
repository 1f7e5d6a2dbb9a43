//! Entries of an image's file system.

use std::collections::BTreeSet;
use std::path::Path;

/// A file, a directory or a link of the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path from the root, without a slash at either end.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// The user that owns it. The group is root, to which containers with any other user belong, as in `OpenShift`.
    pub owner: u32,
    /// Directory, file or link.
    pub kind: Kind,
}

/// The type of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Directory,
    /// A file with this content.
    File(Vec<u8>),
    /// A symbolic link to this target.
    Link(String),
}

impl Entry {
    /// A directory that root owns and every user may enter.
    pub fn directory(path: &str) -> Self {
        Self { path: path.to_owned(), mode: 0o755, owner: 0, kind: Kind::Directory }
    }

    /// A file that root owns and every user may read.
    pub fn file(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), mode: 0o644, owner: 0, kind: Kind::File(content.into()) }
    }

    pub fn link(path: &str, target: &str) -> Self {
        Self { path: path.to_owned(), mode: 0o777, owner: 0, kind: Kind::Link(target.to_owned()) }
    }

    #[must_use]
    pub fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    #[must_use]
    pub fn owned_by(self, owner: u32) -> Self {
        Self { owner, ..self }
    }
}

/// Sorts entries by path and adds their missing parent directories.
pub fn with_parents(entries: Vec<Entry>) -> Vec<Entry> {
    let named: BTreeSet<String> = entries.iter().map(|entry| entry.path.clone()).collect();
    let mut parents = BTreeSet::new();
    for entry in &entries {
        let above = Path::new(&entry.path).ancestors().skip(1).filter_map(Path::to_str);
        parents.extend(above.filter(|path| !path.is_empty() && !named.contains(*path)).map(str::to_owned));
    }
    let mut all = entries;
    all.extend(parents.iter().map(|path| Entry::directory(path)));
    all.sort_by(|left, right| left.path.cmp(&right.path));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_what_is_in_them_and_once() {
        let entries =
            vec![Entry::file("b/c/d", "x"), Entry::file("b/a", "y"), Entry::directory("b").mode(0o700)];
        let all = with_parents(entries);
        let paths: Vec<&str> = all.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(paths, ["b", "b/a", "b/c", "b/c/d"]);
        assert_eq!(all[0].mode, 0o700, "a directory that was named stays as it is");
    }
}
