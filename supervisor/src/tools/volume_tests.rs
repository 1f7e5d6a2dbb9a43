use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use serde_json::json;

use super::*;

struct Place {
    _directory: tempfile::TempDir,
    /// The parent of the volume, with a secret.
    outside: PathBuf,
    root: PathBuf,
    volume: Arc<Volume>,
}

fn place() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let outside = directory.path().to_owned();
    fs::write(outside.join("secret"), "the secret").unwrap();
    let root = outside.join("volume");
    let volume = Volume::open(&root, 50);
    assert_eq!(volume.fault(), None);
    Place { _directory: directory, outside, root, volume }
}

impl Place {
    fn call(&self, tool: &str, arguments: &Value) -> FileResult {
        self.volume.run(tool, arguments.as_object().unwrap(), CancellationToken::new())
    }

    fn write(&self, path: &str, content: &str) -> FileResult {
        self.call("write_file", &json!({"file_path": path, "content": content}))
    }

    fn read(&self, path: &str) -> FileResult {
        self.call("read_file", &json!({"file_path": path}))
    }
}

#[test]
fn files_are_written_read_edited_listed_and_found() {
    let place = place();
    assert_eq!(
        place.write("/workspace/docs/a.md", "one\ntwo\n").unwrap(),
        "Wrote 8 bytes to /workspace/docs/a.md."
    );
    assert_eq!(fs::read_to_string(place.root.join("docs/a.md")).unwrap(), "one\ntwo\n");
    let edit = json!({"file_path": "/workspace/docs/a.md", "old_string": "two", "new_string": "three"});
    assert_eq!(place.call("edit_file", &edit).unwrap(), "Wrote 10 bytes to /workspace/docs/a.md.");
    assert_eq!(place.read("workspace/docs/a.md").unwrap(), "     1\tone\n     2\tthree");
    place.write("/workspace/b.txt", "three").unwrap();
    assert_eq!(
        place.call("ls", &json!({"path": "/workspace"})).unwrap(),
        "/workspace/b.txt (5 bytes)\n/workspace/docs/a.md (10 bytes)"
    );
    assert_eq!(
        place.call("ls", &json!({"path": "/workspace/docs"})).unwrap(),
        "/workspace/docs/a.md (10 bytes)"
    );
    assert_eq!(
        place.call("glob", &json!({"pattern": "/workspace/**/*.md"})).unwrap(),
        "/workspace/docs/a.md"
    );
    assert_eq!(
        place.call("grep", &json!({"pattern": "three", "path": "/workspace"})).unwrap(),
        "/workspace/b.txt:1:three\n/workspace/docs/a.md:2:three"
    );
    assert_eq!(
        place.call("grep", &json!({"pattern": "three", "path": "/workspace/b.txt"})).unwrap(),
        "/workspace/b.txt:1:three"
    );
    assert!(place.read("/workspace/none").unwrap_err().contains("there is no such file"));
    assert_eq!(place.call("ls", &json!({"path": "/workspace/none"})).unwrap(), "There are no files here.");
}

#[test]
fn nothing_outside_is_reached() {
    let place = place();
    symlink(&place.outside, place.root.join("up")).unwrap();
    symlink(place.outside.join("secret"), place.root.join("link")).unwrap();
    symlink("../secret", place.root.join("relative")).unwrap();
    fs::create_dir(place.root.join("inside")).unwrap();
    for path in [
        "/workspace/up/secret",
        "/workspace/link",
        "/workspace/relative",
        "/workspace/../secret",
        "/workspace/inside/../../secret",
        "/workspace/up/volume/../secret",
        "/secret",
        "/etc/passwd",
        "/proc/self/environ",
        "/workspace/inside/../up/secret",
    ] {
        let read = place.read(path);
        assert!(read.is_err(), "{path}: {read:?}");
        let edit = json!({"file_path": path, "old_string": "the", "new_string": "no"});
        assert!(place.call("edit_file", &edit).is_err(), "{path}");
    }
    for path in ["/workspace/up/new", "/workspace/../new", "/new", "/workspace/up/volume/new"] {
        let written = place.write(path, "x");
        assert!(written.is_err(), "{path}: {written:?}");
    }
    // A link to a file is replaced, not followed.
    let _ = place.write("/workspace/link", "mine");
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), "the secret");
    let mut left: Vec<_> =
        fs::read_dir(&place.outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["secret", "volume"]);
    for folder in ["/workspace", "/workspace/up", "/workspace/up/volume"] {
        let found = place.call("grep", &json!({"pattern": "secret", "path": folder}));
        assert!(
            found.as_ref().map_or_else(|_| true, |it| it == "No line contains it."),
            "{folder}: {found:?}"
        );
        let listed = place.call("ls", &json!({"path": folder})).unwrap_or_default();
        assert!(!listed.contains("secret"), "{folder}: {listed}");
    }
}

#[test]
fn what_is_no_text_is_refused_and_never_waited_for() {
    let place = place();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.root.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    fs::write(place.root.join("binary"), [0xff, 0xfe]).unwrap();
    fs::File::create(place.root.join("large")).unwrap().set_len(TEXT_BYTES + 1).unwrap();
    fs::create_dir(place.root.join("folder")).unwrap();
    for (path, reason) in [
        ("pipe", "it is no regular file"),
        ("binary", "it is no UTF-8 text"),
        ("large", "it has more than 8388608 bytes"),
        ("folder", "it is no regular file"),
    ] {
        let error = place.read(&format!("/workspace/{path}")).unwrap_err();
        assert!(error.contains(reason), "{path}: {error}");
    }
    for path in ["/workspace/pipe", "/workspace/folder", "/workspace", "/workspace/"] {
        assert!(place.write(path, "x").is_err(), "{path}");
    }
    let found = place.call("grep", &json!({"pattern": "x", "path": "/workspace"}));
    assert_eq!(found.unwrap(), "No line contains it.");
    let long = place.write("/workspace/long", &"x".repeat(FILE_BYTES + 1)).unwrap_err();
    assert!(long.contains("more than the 1048576"), "{long}");
}

#[test]
fn a_file_is_old_or_new_and_nothing_unfinished_stays() {
    let place = place();
    let left = fs::File::create(place.root.join(format!("{UNFINISHED}left"))).unwrap();
    left.set_modified(std::time::SystemTime::now() - ABANDONED).unwrap();
    let other = place.root.join(format!("{UNFINISHED}of-another-process"));
    fs::write(&other, "half").unwrap();
    assert_eq!(place.call("ls", &json!({"path": "/workspace"})).unwrap(), "There are no files here.");
    let again = Volume::open(&place.root, 50);
    assert_eq!(again.fault(), None);
    let names: Vec<_> = fs::read_dir(&place.root).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(names, [other], "what another process writes stays");
    place.write("/workspace/run", "#!/bin/sh\n").unwrap();
    let mode = fs::metadata(place.root.join("run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100, "{mode:o}");
    // A writer that fails leaves the old text.
    let bad = place.write("/workspace/PROGRESS.json", "[]").unwrap_err();
    assert!(bad.contains("it is no object"), "{bad}");
    assert!(place.read("/workspace/PROGRESS.json").is_err());
}

#[tokio::test]
async fn a_run_begins_with_what_the_root_contains() {
    let place = place();
    assert_eq!(place.volume.view().await, VolumeView::default());
    place.write("/workspace/b/c.md", "x").unwrap();
    place.write("/workspace/PROGRESS.json", r#"{"remaining": ["more"]}"#).unwrap();
    let view = place.volume.view().await;
    assert_eq!(view.entries, ["PROGRESS.json", "b/"]);
    assert_eq!(view.progress.as_deref(), Some(r#"{"remaining": ["more"]}"#));
}

#[test]
fn a_directory_that_cannot_be_used_is_reported_by_each_call() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let volume = Volume::open(&file.join("below"), 50);
    assert!(volume.fault().unwrap().contains("failed to use the directory"), "{:?}", volume.fault());
    assert_eq!(volume.path(), None);
    let arguments = json!({"file_path": "/workspace/a", "content": "x"});
    let result = volume.run("write_file", arguments.as_object().unwrap(), CancellationToken::new());
    assert!(result.unwrap_err().contains("failed to use the directory"));
}

#[test]
fn a_search_ends_when_the_call_is_stopped() {
    let place = place();
    place.write("/workspace/a", "x").unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let write = json!({"file_path": "/workspace/a", "content": "late"});
    let written = place.volume.run("write_file", write.as_object().unwrap(), cancel.clone());
    assert!(written.unwrap_err().contains("took longer"));
    assert_eq!(place.read("/workspace/a").unwrap(), "     1\tx", "the model has read that the call failed");
    let result = place.volume.run("ls", json!({"path": "/workspace"}).as_object().unwrap(), cancel);
    assert!(result.unwrap_err().contains("took longer"));
}

/// A command that changes a folder into a link meanwhile leads nobody out.
#[test]
fn a_race_with_a_link_leads_nowhere() {
    let place = place();
    let (swapped, inside) = (place.root.join("swapped"), place.root.join("inside"));
    fs::create_dir(&inside).unwrap();
    fs::write(inside.join("secret"), "harmless").unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                let _ = fs::rename(&inside, &swapped);
                let _ = fs::rename(&swapped, &inside);
                let _ = symlink(&place.outside, &swapped);
                let _ = fs::remove_file(&swapped);
            }
        });
        for _ in 0..2000 {
            let read = place.read("/workspace/swapped/secret");
            assert!(!read.is_ok_and(|text| text.contains("the secret")));
            let _ = place.write("/workspace/swapped/new", "x");
            let found = place.call("grep", &json!({"pattern": "the secret", "path": "/workspace"}));
            assert!(!found.is_ok_and(|text| text.contains("the secret")));
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), "the secret");
    assert!(!place.outside.join("new").exists());
}
