use std::os::unix::fs::symlink;

use super::*;
use crate::limits::{DESCRIPTION_CHARS, FRONT_MATTER_BYTES, METADATA_ENTRIES, NAME_CHARS};
use crate::skill::SourceKind;

fn origin() -> Origin {
    Origin { kind: SourceKind::Default, id: "test".into(), is_built_in: false }
}

fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn document(name: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: Does it. Use when asked.\n{more}---\n# Do it\n")
}

/// The faults of a directory with one skill `s`, whose `SKILL.md` has this content.
fn faults_of(content: impl AsRef<[u8]>) -> String {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("s/SKILL.md"), content);
    shown(dir.path())
}

fn shown(dir: &Path) -> String {
    let found = read_folder(dir, &origin()).unwrap();
    assert!(found.skills.is_empty() || found.faults.is_empty(), "{found:?}");
    found.faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_skill_is_read_with_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let more = "license: MIT\nmetadata:\n  tags: [a, b]\n";
    write(&dir.path().join("triage/SKILL.md"), document("triage", more));
    write(&dir.path().join("triage/metadata.json"), r#"{"team": "sre", "license": "no"}"#);
    write(&dir.path().join("triage/references/levels.md"), "SEV1");
    write(&dir.path().join("triage/scripts/run.sh"), "#!/bin/sh\n");
    write(&dir.path().join("triage/assets/logo.png"), [0x89, 0, 0xff]);
    write(&dir.path().join("triage/.hidden"), "x");
    write(&dir.path().join("flat--SKILL.md"), document("flat", ""));
    write(&dir.path().join("flat--metadata.json"), r#"{"tags": "c,d"}"#);
    write(&dir.path().join("README.md"), "no skill");
    write(&dir.path().join("notes/README.md"), "no skill");
    let found = read_folder(dir.path(), &origin()).unwrap();
    assert_eq!(found.faults, []);
    let [flat, triage] = &found.skills[..] else { panic!("{found:?}") };
    assert_eq!((flat.name.as_str(), flat.has_tag(&["d".to_owned()])), ("flat", true));
    assert_eq!(triage.description, "Does it. Use when asked.");
    assert_eq!(triage.instructions(), "# Do it");
    let metadata = serde_json::to_value(&triage.metadata).unwrap();
    assert_eq!(metadata, serde_json::json!({"tags": ["a", "b"], "license": "MIT", "team": "sre"}));
    let files: Vec<_> =
        triage.resources.iter().map(|it| (it.path.as_str(), it.size, it.text.is_some())).collect();
    assert_eq!(
        files,
        [("assets/logo.png", 3, false), ("references/levels.md", 4, true), ("scripts/run.sh", 10, true)]
    );
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn hostile_documents_are_refused_with_their_path() {
    let long = |count: usize| "a".repeat(count);
    let bomb = "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b]\n";
    let deep = format!("x: {}{}\n", "[".repeat(50), "]".repeat(50));
    let entries = (0..=METADATA_ENTRIES).map(|at| format!("  k{at}: v\n")).collect::<Vec<_>>().concat();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "must begin with a line ---"),
        (b"# No front matter\n".to_vec(), "must begin with a line ---"),
        (b"---\nname: s\ndescription: d\n# never closed\n".to_vec(), "must begin with a line ---"),
        (b" ---\nname: s\n---\nx".to_vec(), "must begin with a line ---"),
        (b"---\n---\nx".to_vec(), "no mapping"),
        (b"---\n- a\n- b\n---\nx".to_vec(), "no mapping"),
        (b"---\njust text\n---\nx".to_vec(), "no mapping"),
        (b"---\nname: s\n---\nx".to_vec(), "description: is missing"),
        (b"---\ndescription: d\n---\nx".to_vec(), "name: is missing"),
        (b"---\nname: s\ndescription: ''\n---\nx".to_vec(), "description: is empty"),
        (b"---\nname:\ndescription: d\n---\nx".to_vec(), "name: is empty"),
        (b"---\nname: 7\ndescription: d\n---\nx".to_vec(), "name: must be text"),
        (b"---\nname: [s]\ndescription: d\n---\nx".to_vec(), "name: must be text"),
        (b"---\nname: s\nname: s\ndescription: d\n---\nx".to_vec(), "cannot be read"),
        (b"---\nname: s\ndescription: {a: b}\n---\nx".to_vec(), "description: must be text"),
        (b"---\nname: s\ndescription: d\n---\n \n".to_vec(), "no instructions"),
        (b"---\nname: s\ndescription: d\n--- x\n".to_vec(), "must begin with a line ---"),
        (b"---\nname: s\ndescription: \"a\\u0007b\"\n---\nx".to_vec(), "control characters"),
        (b"---\nname: s\ndescription: d\nlicense: [a]\n---\nx".to_vec(), "license: must be text"),
        (b"---\nname: s\ndescription: d\nmetadata: text\n---\nx".to_vec(), "metadata: must be a mapping"),
        (
            b"---\nname: s\ndescription: d\nmetadata: {a: {b: c}}\n---\nx".to_vec(),
            "metadata.a: must be a text",
        ),
        (b"---\nname: s\ndescription: d\nhooks: {a: b}\n---\nx".to_vec(), "hooks: must be a text"),
        (b"---\nname: !!python/object/apply:os.system [id]\ndescription: d\n---\nx".to_vec(), ""),
        (b"---\nname: *missing\ndescription: d\n---\nx".to_vec(), "cannot be read"),
        (b"---\nname: s\n\tdescription: d\n---\nx".to_vec(), "cannot be read"),
        (b"---\nname: s\ndescription: \xff\xfe\n---\nx".to_vec(), "no UTF-8"),
        (b"\xff\xfe-\0-\0-\0".to_vec(), "no UTF-8"),
        (document("S", "").into(), "lower-case"),
        (document("other", "").into(), "its folder is \"s\""),
        (document("-s", "").into(), "hyphen"),
        (document("s--s", "").into(), "hyphen"),
        (document("../s", "").into(), "lower-case"),
        (document("s/s", "").into(), "lower-case"),
        (document("\u{455}", "").into(), "lower-case"),
        (document(&long(NAME_CHARS + 1), "").into(), "1 to 64"),
        (document("s", bomb).into(), "cannot be read"),
        (document("s", &deep).into(), "cannot be read"),
        (document("s", &format!("metadata:\n{entries}")).into(), "more than 64 entries"),
        (document("s", &format!("x: {}\n", long(FRONT_MATTER_BYTES))).into(), "front matter"),
        (
            format!("---\nname: s\ndescription: {}\n---\nx", long(DESCRIPTION_CHARS + 1)).into(),
            "1025 characters",
        ),
        (format!("{}{}", document("s", ""), long(DOCUMENT_BYTES)).into(), "larger than"),
        (document("s", "compatibility: '\n").into(), "cannot be read"),
        (document("s", &format!("compatibility: {}\n", long(501))).into(), "compatibility: has more"),
    ];
    assert!(cases.len() >= 40);
    for (content, expected) in cases {
        let faults = faults_of(&content);
        let begin = String::from_utf8_lossy(&content).chars().take(80).collect::<String>();
        assert!(!faults.is_empty() && faults.contains(expected), "{begin:?}: {faults:?}, not {expected:?}");
        assert!(faults.starts_with('s'), "{faults}");
    }
}

#[test]
fn hostile_files_are_refused() {
    type Make = fn(&Path, &Path);
    let cases: [(Make, &str); 12] = [
        (|skill, out| symlink(out.join("secret"), skill.join("a.md")).unwrap(), "leaves the directory"),
        (|skill, _| symlink("/etc/passwd", skill.join("a.md")).unwrap(), "leaves the directory"),
        (
            |skill, _| symlink("../../../../../etc/passwd", skill.join("a.md")).unwrap(),
            "leaves the directory",
        ),
        (|skill, out| symlink(out, skill.join("a")).unwrap(), "leaves the directory"),
        (|skill, _| symlink("missing", skill.join("a.md")).unwrap(), "No such file"),
        (|skill, _| symlink("a.md", skill.join("a.md")).unwrap(), "symbolic links"),
        (|skill, _| symlink(".", skill.join("a")).unwrap(), "no regular file"),
        (|skill, _| write(&skill.join("a.md"), vec![b'a'; RESOURCE_BYTES + 1]), "larger than"),
        (
            |skill, _| (0..=RESOURCES).for_each(|at| write(&skill.join(format!("{at}.md")), "a")),
            "more than 64 files",
        ),
        (|skill, _| write(&skill.join("a/b/c/d/e/f/g/h.md"), "a"), "folders deep"),
        (|skill, _| write(&skill.join("a\u{202e}dm.exe"), "a"), "ASCII"),
        (|skill, _| write(&skill.join("a\nb.md"), "a"), "ASCII"),
    ];
    for (make, expected) in cases {
        let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(&outside.path().join("secret"), "secret");
        let skill = dir.path().join("s");
        write(&skill.join("SKILL.md"), document("s", ""));
        make(&skill, outside.path());
        let faults = shown(dir.path());
        assert!(faults.contains(expected), "{faults:?}, not {expected:?}");
    }
}

#[test]
fn a_pipe_a_linked_document_and_a_linked_folder_are_refused() {
    let (dir, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    write(&outside.path().join("s/SKILL.md"), document("s", ""));
    symlink(outside.path().join("s"), dir.path().join("s")).unwrap();
    fs::create_dir(dir.path().join("t")).unwrap();
    symlink(outside.path().join("s/SKILL.md"), dir.path().join("t/SKILL.md")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(dir.path().join("u--SKILL.md")).status().unwrap();
    assert!(status.success());
    let faults = shown(dir.path());
    let lines: Vec<&str> = faults.lines().collect();
    assert_eq!(lines.len(), 3, "{faults}");
    assert!(lines[0].starts_with("s: is a symbolic link to a folder"), "{faults}");
    assert!(lines[1].starts_with("t/SKILL.md: is a symbolic link that leaves"), "{faults}");
    assert!(lines[2].starts_with("u--SKILL.md: is no regular file"), "{faults}");
}

#[test]
fn a_mounted_config_map_is_read_through_its_links() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("..data-1/flat--SKILL.md"), document("flat", ""));
    symlink("..data-1", dir.path().join("..data")).unwrap();
    symlink("..data/flat--SKILL.md", dir.path().join("flat--SKILL.md")).unwrap();
    let before = fingerprint(dir.path()).unwrap();
    assert_eq!(read_folder(dir.path(), &origin()).unwrap().skills.len(), 1);
    write(&dir.path().join("..data-2/flat--SKILL.md"), document("flat", "license: MIT\n"));
    fs::remove_file(dir.path().join("..data")).unwrap();
    symlink("..data-2", dir.path().join("..data")).unwrap();
    assert_ne!(fingerprint(dir.path()).unwrap(), before);
    assert!(read_folder(dir.path(), &origin()).unwrap().skills[0].metadata.contains_key("license"));
}

#[test]
fn one_faulty_skill_leaves_the_others() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("good/SKILL.md"), document("good", ""));
    write(&dir.path().join("bad/SKILL.md"), "nothing");
    let found = read_folder(dir.path(), &origin()).unwrap();
    assert_eq!((found.skills.len(), found.faults.len()), (1, 1));
    assert!(read_folder(&dir.path().join("missing"), &origin()).unwrap_err().starts_with("failed to read"));
}
