//! Writes entries as files into a directory, for a Dockerfile, and reads a directory as entries.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::Path;

use crate::file_entry::{Entry, Kind, with_parents};

/// Writes the entries below a directory, which is created if it is missing. `owned` sets their owners, which only root
/// may do.
///
/// # Errors
/// If an entry cannot be written, such as a link that exists already.
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
            lchown(&path, Some(entry.owner), Some(0))?;
        }
        if !matches!(entry.kind, Kind::Link(_)) {
            fs::set_permissions(&path, Permissions::from_mode(entry.mode))?;
        }
    }
    Ok(())
}

/// The content of a directory with its permissions; root is the owner. Devices and sockets are left out, because an image
/// cannot have them.
///
/// # Errors
/// If something cannot be read, or has a name that is not UTF-8.
pub fn read(root: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut below = vec![String::new()];
    while let Some(directory) = below.pop() {
        for found in fs::read_dir(root.join(&directory))? {
            let name = found?.file_name().into_string().map_err(|name| {
                let message = format!("{} is not UTF-8", Path::new(&directory).join(name).display());
                io::Error::new(io::ErrorKind::InvalidData, message)
            })?;
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            if let Some(entry) = entry(root, &path).map_err(|error| named(&path, &error))? {
                below.extend((entry.kind == Kind::Directory).then_some(path));
                entries.push(entry);
            }
        }
    }
    Ok(with_parents(entries))
}

fn entry(root: &Path, path: &str) -> io::Result<Option<Entry>> {
    let place = root.join(path);
    let found = fs::symlink_metadata(&place)?;
    let mode = found.permissions().mode() & 0o7777;
    let kind = found.file_type();
    Ok(if kind.is_dir() {
        Some(Entry::directory(path).mode(mode))
    } else if kind.is_file() {
        Some(Entry::file(path, fs::read(place)?).mode(mode))
    } else if kind.is_symlink() {
        let target = fs::read_link(place)?.into_os_string().into_string();
        let target =
            target.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "its target is not UTF-8"))?;
        Some(Entry::link(path, &target))
    } else {
        None
    })
}

fn named(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
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

    #[test]
    fn what_was_written_is_read_back_as_roots_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let entries = with_parents(vec![
            Entry::file("usr/bin/run", "#!/bin/sh").mode(0o755),
            Entry::link("usr/bin/also", "run"),
            Entry::directory("tmp").mode(0o1777),
            Entry::directory("data").owned_by(65532),
        ]);
        write(dir.path(), &entries, false).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(dir.path().join("tmp/socket")).unwrap();
        let ours: Vec<Entry> = entries.into_iter().map(|entry| entry.owned_by(0)).collect();
        assert_eq!(read(dir.path()).unwrap(), ours);
    }
}
