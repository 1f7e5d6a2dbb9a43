use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn files(paths: &[&str]) -> BTreeMap<String, String> {
    paths.iter().map(|path| ((*path).to_owned(), format!("content of {path}"))).collect()
}

#[test]
fn virtual_files_do_not_hide_the_volume() {
    let parent = tempfile::tempdir().unwrap();
    let directory = CallDirectory::create(parent.path(), None).unwrap();
    let files: BTreeMap<String, String> =
        ["/workspace/a", "/workspaces/b"].map(|path| (path.to_owned(), String::new())).into();
    let written: Vec<_> = directory.write(&files, true).unwrap().into_iter().collect();
    assert_eq!(written, ["/workspaces/b"]);
    let volume = ShellVolume { directory: parent.path().to_owned(), is_writable: true };
    directory.link(&volume).unwrap();
    assert!(directory.work().join("workspace").is_symlink());
    directory.unlink_volume();
    assert!(!directory.work().join("workspace").exists());
}

#[test]
fn writes_files_where_their_paths_say_and_never_outside() {
    let parent = tempfile::tempdir().unwrap();
    let directory = CallDirectory::create(parent.path(), None).unwrap();
    let long = format!("/{}", "x".repeat(256));
    let files = files(&["/a.txt", "/b/c/d.txt", "/b/c", "/../out", "/b/../../out", &long, "/", "/nul\0"]);
    let written = directory.write(&files, false).unwrap();
    assert_eq!(written.into_iter().collect::<Vec<_>>(), ["/", "/a.txt", "/b/c"]);
    assert_eq!(std::fs::read_to_string(directory.work().join("a.txt")).unwrap(), "content of /a.txt");
    assert!(!parent.path().join("out").exists());
    let mode = std::fs::metadata(&directory.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn scripts_are_executable() {
    let parent = tempfile::tempdir().unwrap();
    let directory = CallDirectory::create(parent.path(), None).unwrap();
    directory.write(&[("/run".to_owned(), "#!/bin/sh\n".to_owned())].into(), false).unwrap();
    let mode = std::fs::metadata(directory.work().join("run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn removes_everything_and_follows_no_link() {
    let parent = tempfile::tempdir().unwrap();
    let outside = parent.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("kept"), "").unwrap();
    let directory = CallDirectory::create(parent.path(), None).unwrap();
    let work = directory.work();
    symlink(&outside, work.join("link")).unwrap();
    std::fs::create_dir_all(work.join("a/b/c")).unwrap();
    std::fs::write(work.join("a/b/c/file"), "").unwrap();
    std::fs::set_permissions(work.join("a/b"), PermissionsExt::from_mode(0o0)).unwrap();
    let path = directory.path.clone();
    drop(directory);
    assert!(!path.exists());
    assert!(outside.join("kept").exists());
}

#[test]
fn removes_directories_deeper_than_a_path_can_be() {
    let parent = tempfile::tempdir().unwrap();
    let directory = CallDirectory::create(parent.path(), None).unwrap();
    let mut inner = rustix::fs::open(directory.work(), DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..5000 {
        rustix::fs::mkdirat(&inner, "d", Mode::RWXU).unwrap();
        inner = openat(&inner, "d", DIRECTORY, Mode::empty()).unwrap();
    }
    let path = directory.path.clone();
    drop((inner, directory));
    assert!(!path.exists());
}

#[test]
fn removes_abandoned_directories_only() {
    let parent = tempfile::tempdir().unwrap();
    let used = CallDirectory::create(parent.path(), None).unwrap();
    let abandoned = parent.path().join(format!("{PREFIX}1"));
    std::fs::create_dir_all(abandoned.join(WORK)).unwrap();
    std::fs::create_dir(parent.path().join("other")).unwrap();
    let new = CallDirectory::create(parent.path(), None).unwrap();
    for path in [&abandoned, &used.path] {
        std::fs::File::open(path).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    remove_abandoned(parent.path());
    assert!(
        !abandoned.exists()
            && used.path.exists()
            && new.path.exists()
            && parent.path().join("other").exists()
    );
}
