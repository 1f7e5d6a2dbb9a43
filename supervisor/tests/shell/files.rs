//! Commands on the virtual files of a conversation.

use caipe_supervisor::tools::{ShellSettings, ShellVolume};
use tokio_util::sync::CancellationToken;

use super::sandbox::{Sandbox, directory};

pub(crate) async fn run(landlock: u8) {
    let sandbox = Sandbox::new(landlock);
    gives_output_and_exit_code(&sandbox).await;
    keeps_what_the_command_changes(&sandbox).await;
    runs_common_programs(&sandbox).await;
    works_on_the_volume(landlock).await;
}

/// The volume of the workspace outlives the command, and is written only with the right to.
async fn works_on_the_volume(landlock: u8) {
    for is_writable in [true, false] {
        let volume = directory();
        let path = volume.path().canonicalize().unwrap();
        std::fs::write(path.join("old"), "old\n").unwrap();
        let given = ShellVolume { directory: path.clone(), is_writable };
        let sandbox = Sandbox::with(landlock, |settings| ShellSettings { volume: Some(given), ..settings });
        let command = "cat workspace/old; mkdir -p workspace/a/b && echo new > workspace/a/b/c && mv workspace/a/b/c workspace/a/d; \
                       echo virtual > v; ln -s /etc/passwd workspace/link; exit 0";
        let output = sandbox.run(command).await;
        assert!(output.content.starts_with("old\n"), "{}", output.content);
        let files: Vec<_> = output.files.keys().map(String::as_str).collect();
        assert_eq!(files, ["/v"], "{}", output.content);
        let on_volume: Vec<_> = output.on_volume.iter().map(String::as_str).collect();
        let expected: &[&str] = if is_writable { &["/workspace/a/d", "/workspace/link"] } else { &[] };
        assert_eq!(on_volume, expected, "{}", output.content);
        assert_eq!(path.join("a/d").exists(), is_writable);
        let named = output.content.contains("[changed on the volume: /workspace/a/d, /workspace/link]");
        assert_eq!(named, is_writable, "{}", output.content);
        assert!(!output.content.contains("not kept as files"), "{}", output.content);
    }
    let volume = directory();
    let given = ShellVolume { directory: volume.path().canonicalize().unwrap(), is_writable: true };
    let sandbox = Sandbox::with(landlock, |settings| ShellSettings { volume: Some(given), ..settings });
    let output = sandbox
        .run("for i in 1 2 3 4 5 6 7 8; do head -c 60000000 /dev/zero > workspace/$i; done; sleep 5")
        .await;
    assert!(output.content.contains("wrote more than 256 MiB"), "{}", output.content);
}

async fn gives_output_and_exit_code(sandbox: &Sandbox) {
    for (command, code, expected) in [
        ("echo out; echo err >&2", 0, "out\nerr\n[exit code 0]"),
        ("true", 0, "[exit code 0]"),
        ("exit 7", 7, "[exit code 7]"),
        ("kill -9 $$ 2> /dev/null || exit 137", 137, ""),
        ("cat", 0, "[exit code 0]"),
        (
            "env | sort | cut -d= -f1 | tr '\\n' ' '",
            0,
            "GIT_CONFIG_NOSYSTEM HOME LANG PATH PWD TMPDIR \n[exit code 0]",
        ),
        ("frobnicate", 127, "/bin/sh: 1: frobnicate: not found\n[exit code 127]"),
    ] {
        let output = sandbox.run(command).await;
        assert_eq!((output.exit_code, output.is_error), (Some(code), false), "{command}: {}", output.content);
        assert!(expected.is_empty() || output.content == expected, "{command}: {}", output.content);
    }
}

async fn keeps_what_the_command_changes(sandbox: &Sandbox) {
    let files = [("/a.txt", "one\n"), ("/b/c.txt", "two\n"), ("/gone", "")];
    let command = "cat a.txt b/c.txt; echo three >> a.txt; mkdir -p d/e; cp b/c.txt d/e/f; rm gone; echo t > $TMPDIR/t; \
                   head -c 2000000 /dev/zero > large";
    let output = sandbox.run_with(command, &files, 20.0, CancellationToken::new()).await;
    let changed: Vec<_> = output.files.iter().map(|(path, text)| (path.as_str(), text.as_deref())).collect();
    assert_eq!(
        changed,
        [("/a.txt", Some("one\nthree\n")), ("/d/e/f", Some("two\n")), ("/gone", None)],
        "{}",
        output.content
    );
    assert_eq!(
        output.content,
        "one\ntwo\n[exit code 0]\n[files written: /a.txt, /d/e/f]\n[files removed: /gone]\n[not kept as files: /large: it is \
         larger than 1048576 bytes]"
    );
}

/// What programs commonly do is not refused.
async fn runs_common_programs(sandbox: &Sandbox) {
    let files = [("/s", "#!/bin/sh\necho script\n"), ("/p.awk", "{ print $2 }")];
    for command in [
        "./s | grep -q script",
        "echo a b | awk -f p.awk | grep -qx b",
        "seq 100000 | sort -r | uniq | wc -l | grep -qx 100000",
        "mkdir x && echo 1 > x/1 && mv x y && cp -rp y z && ln -s z l && rm -r y z l",
        "touch t && touch -d 2020-01-01 t && sed -i s/a/b/ t && tar cf t.tar t && tar xf t.tar && gzip t.tar",
        "chmod +x s && chmod 600 s && ls -l > /dev/null",
        "sleep 0 & wait; (cd / && pwd) | grep -qx /; date > /dev/null; id > /dev/null; find . -name s > /dev/null",
        "command -v python3 > /dev/null || exit 0; python3 -c 'import json, subprocess, threading; \
         print(subprocess.run([\"echo\", \"hi\"], capture_output=True).stdout)' | grep -q hi",
        "command -v git > /dev/null || exit 0; git init -q r && cd r && git config user.email a@b && git config user.name a && \
         echo 1 > f && git add f && git commit -qm m && git log --oneline | grep -q m",
        "command -v perl > /dev/null || exit 0; perl -e 'print `echo hi`' | grep -q hi",
        "command -v bash > /dev/null || exit 0; bash -c 'cat <<X | grep -q hi\nhi\nX\n[[ a == a ]] && diff <(echo 1) <(echo 1) || true'",
    ] {
        let output = sandbox.run_with(command, &files, 20.0, CancellationToken::new()).await;
        assert_eq!(output.exit_code, Some(0), "{command}: {}", output.content);
    }
}
