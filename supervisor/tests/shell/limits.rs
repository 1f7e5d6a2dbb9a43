//! Commands that take too much, or that do not end. Each call ends, and no process and no directory is left.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::sandbox::{PATIENCE, Sandbox, processes_with};

pub(crate) async fn run(landlock: u8) {
    let sandbox = Sandbox::with(landlock, |settings| caipe_supervisor::tools::ShellSettings {
        output_bytes: 1000,
        ..settings
    });
    stops_what_takes_too_much(&sandbox).await;
    bounds_output(&sandbox).await;
    ends_at_the_deadline(&sandbox).await;
    ends_when_cancelled(&sandbox).await;
    ends_when_its_caller_is_gone(&sandbox).await;
    ends_what_runs_in_the_background(&sandbox, landlock).await;
    calls_do_not_disturb_each_other(&sandbox).await;
}

async fn stops_what_takes_too_much(sandbox: &Sandbox) {
    for (command, expected) in [
        ("f() { f | f & }; f; sleep 19", "more than 64 processes"),
        ("f() { f & f & wait; }; f", "more than 64 processes"),
        ("while :; do sleep 19 & done", "more than 64 processes"),
        ("python3 -c 'a = []\nwhile True: a.append(bytearray(10 << 20))'", "more than 512 MiB of memory"),
        (
            "for i in 1 2 3 4; do python3 -c 'a = bytearray(300 << 20)\nfor i in range(0, len(a), 4096): a[i] = 1\nimport time\ntime.sleep(19)' & done; wait",
            "more than 512 MiB of memory",
        ),
        (
            "python3 -c 'import mmap, time\na = [mmap.mmap(-1, 200 << 20) for _ in range(5)]\nfor m in a: m.write(b\"a\" * (200 << 20))\ntime.sleep(19)'",
            "more than 512 MiB of memory",
        ),
        ("i=0; while :; do head -c 50000000 /dev/zero > $i; i=$((i + 1)); done", "more than 256 MiB"),
        ("i=0; while :; do head -c 50000000 /dev/zero > $TMPDIR/$i; i=$((i + 1)); done", "more than 256 MiB"),
        ("i=0; while :; do : > $i; i=$((i + 1)); done", "more than 256 MiB, too many files"),
        ("while :; do mkdir d; cd d || exit; done", "too deep directories"),
        (
            "python3 -c 'import os, time\nfiles = []\nfor i in range(20):\n f = open(\"f\", \"wb\"); os.unlink(\"f\"); \
             f.write(b\"a\" * (20 << 20)); f.flush(); files.append(f)\ntime.sleep(19)'",
            "more than 256 MiB",
        ),
        (
            "mkdir d; cd d; python3 -c 'import os, time\nos.fchmod(os.open(\".\", os.O_RDONLY), 0o300)\ntime.sleep(1)'",
            "",
        ),
    ] {
        let begun = Instant::now();
        let output = sandbox.run(command).await;
        assert!(output.content.contains(expected), "{command}: {}", output.content);
        assert!(begun.elapsed() < PATIENCE, "{command}: {:?}", begun.elapsed());
    }
}

async fn bounds_output(sandbox: &Sandbox) {
    for command in ["yes | head -c 30000000", "yes >&2 & sleep 1", "head -c 30000000 /dev/zero"] {
        let output = sandbox.run(command).await;
        assert!(
            output.content.contains("bytes of output are missing here]\n"),
            "{command}: {}",
            output.content
        );
        assert!(output.content.len() < 1400, "{command}: {} bytes", output.content.len());
    }
}

async fn ends_at_the_deadline(sandbox: &Sandbox) {
    for command in [
        "sleep 61234",
        "while :; do :; done",
        "trap '' TERM INT HUP; while :; do sleep 61234; done",
        "sleep 61234 & sleep 61234 & wait",
        "echo kept > kept; cat /dev/zero > /dev/null",
        "mkfifo p; cat p",
    ] {
        let begun = Instant::now();
        let output = sandbox.run_with(command, &[], 0.5, CancellationToken::new()).await;
        assert!(
            output.is_error && output.content.contains("did not end within 0.5 seconds"),
            "{command}: {}",
            output.content
        );
        assert_eq!(output.exit_code, None, "{command}");
        assert_eq!(output.files.contains_key("/kept"), command.contains("kept"), "{command}: files are kept");
        assert!(begun.elapsed() < PATIENCE, "{command}: {:?}", begun.elapsed());
        assert!(processes_with("61234").is_empty(), "{command}: a process is left");
    }
}

async fn ends_when_cancelled(sandbox: &Sandbox) {
    let cancel = CancellationToken::new();
    let call = sandbox.run_with("sleep 61235", &[], 20.0, cancel.clone());
    let stop = async {
        until(|| !processes_with("sleep\u{0}61235").is_empty()).await;
        cancel.cancel();
    };
    let (output, ()) = tokio::join!(call, stop);
    assert!(output.is_error && output.content.contains("the call was cancelled"), "{}", output.content);
    assert!(processes_with("61235").is_empty());
}

async fn ends_when_its_caller_is_gone(sandbox: &Sandbox) {
    {
        let call = sandbox.run_with("sleep 61236", &[], 20.0, CancellationToken::new());
        let begun = until(|| !processes_with("sleep\u{0}61236").is_empty());
        tokio::select! {
            output = call => panic!("{}", output.content),
            () = begun => {}
        }
    }
    until(|| processes_with("61236").is_empty()).await;
    until(|| std::fs::read_dir(sandbox.calls.path()).unwrap().next().is_none()).await;
}

async fn ends_what_runs_in_the_background(sandbox: &Sandbox, landlock: u8) {
    for command in [
        "sleep 61237 & echo started",
        "(sleep 61237 &) ; echo started",
        "nohup sleep 61237 > /dev/null 2>&1 & echo started",
        "setsid sleep 61237 & setsid -f sleep 61237; echo started",
        "python3 -c 'import os, time\nfor i in range(3):\n if os.fork(): os._exit(0)\n try: os.setsid()\n except OSError: pass\n\
         time.sleep(61237)' & sleep 0.3; echo started",
        "(trap '' HUP TERM INT; exec sleep 61237) & echo started",
        "python3 -c 'import ctypes, os, time\nctypes.CDLL(None).prctl(36, 1)\nif os.fork() == 0: time.sleep(61237)' ; echo started",
    ] {
        let begun = Instant::now();
        let output = sandbox.run(command).await;
        assert!(output.content.contains("started"), "{command}: {}", output.content);
        assert!(begun.elapsed() < PATIENCE, "{command}");
        assert!(processes_with("61237").is_empty(), "{command}: a process is left with Landlock {landlock}");
    }
}

async fn calls_do_not_disturb_each_other(sandbox: &Sandbox) {
    let slow = sandbox.run_no_check("sleep 1; echo slow");
    let killer = async {
        until(|| !processes_with("sleep\u{0}1\u{0}").is_empty()).await;
        sandbox
            .run_no_check("kill -9 -1; kill -9 $(seq 2 40000) 2> /dev/null; f() { f | f & }; f; sleep 19")
            .await
    };
    let (slow, killer) = tokio::join!(slow, killer);
    assert!(slow.content.starts_with("slow\n[exit code 0]"), "{}", slow.content);
    assert!(!killer.content.contains("exit code 0"), "{}", killer.content);
}

/// Waits for the machine; there is no event for it.
async fn until(mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < PATIENCE, "it takes too long");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
