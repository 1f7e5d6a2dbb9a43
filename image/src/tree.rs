//! Entries as files in a directory, from which a Dockerfile copies them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

use crate::entry::{Entry, Kind};

/// Writes the entries below a directory, which is made if need be.
///
/// Only root can give files away: for anybody else they stay their own.
///
/// # Errors
/// When one cannot be written; a link that is there already is one of those.
pub fn write(root: &Path, entries: &[Entry], owned: bool) -> io::Result<()> {
    fs::create_dir_all(root)?;
    for entry in entries {
        let path = root.join(&entry.path);
        match &entry.kind {
            Kind::Directory => fs::create_dir_all(&path)?,
            Kind::File(content) => fs::write(&path, content)?,
            Kind::Link(target) => symlink(target, &path)?,
        }
        if owned {
            lchown(&path, Some(entry.owner), Some(entry.owner))?;
        }
        if !matches!(entry.kind, Kind::Link(_)) {
            fs::set_permissions(&path, Permissions::from_mode(entry.mode))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root::{self, Programs};

    #[test]
    fn a_directory_gets_the_files_of_the_image() {
        let dir = tempfile::tempdir().unwrap();
        let entries =
            root::files(Programs { supervisor: b"supervisor".to_vec(), operator: b"operator".to_vec() });
        write(dir.path(), &entries, false).unwrap();
        for entry in &entries {
            let path = dir.path().join(&entry.path);
            let found = fs::symlink_metadata(&path).unwrap();
            match &entry.kind {
                Kind::Link(target) => assert_eq!(fs::read_link(&path).unwrap(), Path::new(target)),
                Kind::File(content) => assert_eq!(&fs::read(&path).unwrap(), content),
                Kind::Directory => assert!(found.is_dir()),
            }
            if !found.is_symlink() {
                assert_eq!(found.permissions().mode() & 0o7777, entry.mode, "{}", entry.path);
            }
        }
    }
}
