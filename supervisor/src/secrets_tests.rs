//! Secrets as the kubelet mounts them.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use super::{MAX_SECRET, with_secrets};
use crate::config::Environment;

fn env() -> Environment {
    Arc::new(BTreeMap::from(
        [("TOKEN", "outer"), ("HOME", "/root")].map(|(a, b)| (a.to_owned(), b.to_owned())),
    ))
}

#[test]
fn files_come_before_the_environment_and_lose_their_line_end() {
    let dir = tempfile::tempdir().unwrap();
    // `..data` points to the newest version, and each key to the file in there.
    let version = dir.path().join("..2026_01");
    std::fs::create_dir(&version).unwrap();
    std::fs::write(version.join("TOKEN"), "inner\r\n").unwrap();
    symlink(&version, dir.path().join("..data")).unwrap();
    symlink("..data/TOKEN", dir.path().join("TOKEN")).unwrap();
    std::fs::write(dir.path().join(".hidden"), "x").unwrap();
    std::fs::write(dir.path().join("BINARY"), [0xff, 0xfe]).unwrap();
    std::fs::create_dir(dir.path().join("FOLDER")).unwrap();
    let large = std::fs::File::create(dir.path().join("LARGE")).unwrap();
    large.set_len(MAX_SECRET + 1).unwrap();

    let seen = with_secrets(&env(), dir.path().to_str());
    let expected = [("HOME", "/root"), ("TOKEN", "inner")].map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(*seen, BTreeMap::from(expected));
}

#[test]
fn without_a_readable_directory_the_environment_stands() {
    assert_eq!(with_secrets(&env(), None), env());
    assert_eq!(with_secrets(&env(), Some("/nowhere/secrets")), env());
}
