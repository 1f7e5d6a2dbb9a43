use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn changes(before: &[(&str, &str)], edit: impl FnOnce(&Path)) -> Changes {
    let directory = tempfile::tempdir().unwrap();
    let before: BTreeMap<String, String> =
        before.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect();
    for (path, content) in &before {
        fs::write(directory.path().join(path.trim_start_matches('/')), content).unwrap();
    }
    edit(directory.path());
    let written = before.keys().map(String::as_str).collect();
    collect(directory.path(), &before, &written).unwrap()
}

fn files(expected: &[(&str, Option<&str>)]) -> BTreeMap<String, Option<String>> {
    expected.iter().map(|(path, content)| ((*path).to_owned(), content.map(str::to_owned))).collect()
}

#[test]
fn new_changed_and_removed_files_are_changes() {
    let found = changes(&[("/same", "1"), ("/changed", "1"), ("/removed", "1")], |work| {
        fs::write(work.join("changed"), "2").unwrap();
        fs::remove_file(work.join("removed")).unwrap();
        fs::create_dir_all(work.join("a/b")).unwrap();
        fs::write(work.join("a/b/new"), "3").unwrap();
    });
    let expected = files(&[("/changed", Some("2")), ("/removed", None), ("/a/b/new", Some("3"))]);
    assert_eq!(found, Changes { files: expected, ..Changes::default() });
}

#[test]
fn what_is_no_text_file_is_left_out_and_named() {
    let found = changes(&[("/link", "1"), ("/large", "1")], |work| {
        fs::remove_file(work.join("link")).unwrap();
        symlink("/etc/passwd", work.join("link")).unwrap();
        symlink("/etc", work.join("directory-link")).unwrap();
        fs::write(work.join("binary"), [0xff, 0xfe]).unwrap();
        fs::File::create(work.join("large")).unwrap().set_len(1 << 40).unwrap();
        fs::write(work.join("line\nbreak"), "").unwrap();
        fs::write(work.join("first"), "").unwrap();
        fs::hard_link(work.join("first"), work.join("second")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, work.join("pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
    });
    assert_eq!(found.files, files(&[]), "nothing is removed or read");
    let mut named = found.left_out;
    named.sort();
    assert_eq!(
        named,
        [
            "/binary: it is no UTF-8 text",
            "/directory-link: it is a symbolic link",
            "/first: it has more than one name",
            "/large: it is larger than 1048576 bytes",
            "/line\\nbreak: its name has control characters",
            "/link: it is a symbolic link",
            "/pipe: it is no regular file",
            "/second: it has more than one name",
        ]
    );
}

#[test]
fn the_number_and_the_size_of_files_are_limited() {
    let found = changes(&[], |work| {
        for number in 0..6 {
            fs::write(work.join(number.to_string()), "x".repeat(1 << 20)).unwrap();
        }
    });
    assert_eq!((found.files.len(), found.left_out.len()), (4, 2));
    let found = changes(&[], |work| {
        for number in 0..1100 {
            fs::write(work.join(number.to_string()), "").unwrap();
        }
    });
    assert_eq!((found.files.len(), found.left_out.len(), found.more_left_out), (1000, 20, 80));
}

#[test]
fn deep_directories_are_left_out() {
    let found = changes(&[("/kept", "1")], |work| {
        fs::create_dir_all(work.join("d/".repeat(100))).unwrap();
        fs::remove_file(work.join("kept")).unwrap();
    });
    assert_eq!(found.files, files(&[]), "it is not known what is removed");
    assert!(found.left_out[0].contains("deeper than 64"), "{:?}", found.left_out);
}
