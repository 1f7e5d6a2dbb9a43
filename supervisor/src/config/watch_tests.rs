//! The ways in which files change.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use futures::FutureExt as _;

use super::FileWatch;

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for an event of the system, without the check every two seconds.
async fn event(watch: &FileWatch) {
    tokio::time::timeout(PATIENCE, watch.events.notified()).await.expect("there is an event");
}

async fn changes(watch: &mut FileWatch) {
    tokio::time::timeout(PATIENCE, watch.changed()).await.expect("the change is noticed");
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
}

#[tokio::test]
async fn a_file_that_is_written_or_replaced_is_noticed_and_one_that_is_not_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("spec.yaml");
    write(&file, "one");
    let mut watch = FileWatch::new(&file);
    write(&directory.path().join("other"), "x");
    assert!(watch.changed().now_or_never().is_none());

    write(&file, "more than one");
    event(&watch).await;
    changes(&mut watch).await;
    assert!(watch.changed().now_or_never().is_none(), "reported once");

    // As editors do.
    write(&directory.path().join("draft"), "another");
    std::fs::rename(directory.path().join("draft"), &file).unwrap();
    changes(&mut watch).await;
}

#[tokio::test]
async fn a_deleted_file_is_a_change_and_so_is_its_return() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("spec.yaml");
    write(&file, "one");
    let mut watch = FileWatch::new(&file);
    std::fs::remove_file(&file).unwrap();
    changes(&mut watch).await;
    assert!(watch.changed().now_or_never().is_none(), "reported once");
    write(&file, "one");
    changes(&mut watch).await;
}

#[tokio::test]
async fn the_files_that_are_watched_may_change() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (file, script) = (here.path().join("spec.yaml"), there.path().join("script.yaml"));
    write(&file, "one");
    write(&script, "one");
    let mut watch = FileWatch::new(&file);
    watch.set(&[file.clone(), script.clone()]);
    changes(&mut watch).await;
    watch.set(&[file.clone(), script.clone()]);
    assert!(watch.changed().now_or_never().is_none(), "reported once, though it was named again");

    write(&script, "more than one");
    changes(&mut watch).await;
    watch.set(std::slice::from_ref(&file));
    write(&script, "one that is not watched any more");
    assert!(watch.changed().now_or_never().is_none());
    write(&file, "more than one");
    changes(&mut watch).await;
}

#[tokio::test]
async fn a_mounted_config_map_is_noticed_when_its_directory_is_swapped() {
    let mount = tempfile::tempdir().unwrap();
    let path = |name: &str| mount.path().join(name);
    let publish = |version: &str| {
        std::fs::create_dir(path(version)).unwrap();
        write(&path(version).join("spec.yaml"), version);
        symlink(version, path("..data_tmp")).unwrap();
        std::fs::rename(path("..data_tmp"), path("..data")).unwrap();
    };
    publish("..1");
    symlink("..data/spec.yaml", path("spec.yaml")).unwrap();
    let mut watch = FileWatch::new(&path("spec.yaml"));
    publish("..2");
    event(&watch).await;
    changes(&mut watch).await;
    assert_eq!(std::fs::read_to_string(path("spec.yaml")).unwrap(), "..2");
}

#[tokio::test]
async fn a_file_comes_late_or_behind_a_link_where_no_notice_comes_from() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (link, file) = (here.path().join("spec.yaml"), there.path().join("spec.yaml"));
    symlink(&file, &link).unwrap();
    let mut watch = FileWatch::new(&link);
    assert!(watch.changed().now_or_never().is_none(), "there is nothing yet");
    write(&file, "late");
    changes(&mut watch).await;
    std::fs::remove_file(&file).unwrap();
    assert!(watch.changed().now_or_never().is_none(), "a file that is gone holds nothing new");
}
