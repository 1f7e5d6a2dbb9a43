//! The result of a command, for the model.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::time::Duration;

use caipe_engine::ToolOutput;

use super::ShellSettings;
use super::collect::Changes;
use super::launch::Ended;
use super::request::{Ending, Limit, Report};
use super::volume_changes::MAX_ENTRIES;

/// The output of the tool: what the command wrote, then how it ended and what became of its files.
pub(super) fn tool_output(
    ended: &Ended,
    changes: Result<Changes, String>,
    on_volume: Option<BTreeSet<String>>,
    (timeout, settings): (Duration, &ShellSettings),
) -> ToolOutput {
    let Report { ending, background } = &ended.report;
    let mut content = ended.output.text();
    let mut line = |text: &str| {
        if !content.is_empty() && !content.ends_with('\n') {
            content.push('\n');
        }
        content.push_str(text);
        content.push('\n');
    };
    line(&describe(ending, timeout, settings));
    if *background > 0 {
        line(&format!("[processes in the background that ended with the command: {background}]"));
    }
    let files = match changes {
        Ok(changes) => {
            for text in changed(&changes) {
                line(&text);
            }
            changes.files
        }
        Err(fault) => {
            line(&format!("[{fault}; no file was changed]"));
            BTreeMap::default()
        }
    };
    let volume_line = match &on_volume {
        Some(paths) => named("changed on the volume", &paths.iter().collect::<Vec<_>>()),
        None => Some(format!(
            "[changes of the volume are not known: it has more than {MAX_ENTRIES} files and folders]"
        )),
    };
    if let Some(text) = volume_line {
        line(&text);
    }
    let exit_code = exit_code(ending);
    ToolOutput {
        content: content.trim_end().to_owned(),
        is_error: exit_code.is_none(),
        exit_code,
        files,
        on_volume: on_volume.unwrap_or_default(),
        model_use: None,
    }
}

/// The code as shells report it. A command that was stopped has none.
fn exit_code(ending: &Ending) -> Option<i32> {
    match ending {
        Ending::Exited(code) => Some(*code),
        Ending::Signaled(signal) => Some(128 + signal),
        _ => None,
    }
}

fn describe(ending: &Ending, timeout: Duration, settings: &ShellSettings) -> String {
    match ending {
        Ending::Exited(code) => format!("[exit code {code}]"),
        Ending::Signaled(signal) => format!("[ended by signal {signal}]"),
        Ending::TimedOut => format!(
            "[stopped: the command did not end within {} seconds. Give it less to do, or more time with `timeout_seconds`]",
            timeout.as_secs_f64()
        ),
        Ending::Cancelled => "[stopped: the call was cancelled]".to_owned(),
        Ending::Exceeded(Limit::Memory) => {
            format!("[stopped: the command used more than {} MiB of memory]", settings.memory_bytes >> 20)
        }
        Ending::Exceeded(Limit::Processes) => {
            format!("[stopped: the command ran more than {} processes and threads]", settings.processes)
        }
        Ending::Exceeded(Limit::Disk) => format!(
            "[stopped: the command wrote more than {} MiB, too many files, or too deep directories]",
            super::DISK_BYTES >> 20
        ),
        Ending::Failed(reason) => format!("[the command was not run: {reason}]"),
    }
}

/// Most changed files that are named.
const MAX_NAMED: usize = 50;

/// A line that names files; none if there are none.
fn named(label: &str, paths: &[&String]) -> Option<String> {
    let shown: Vec<&str> = paths.iter().take(MAX_NAMED).map(|path| path.as_str()).collect();
    let more = paths.len() - shown.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!paths.is_empty()).then(|| format!("[{label}: {}{more}]", shown.join(", ")))
}

fn changed(changes: &Changes) -> Vec<String> {
    let (removed, written): (Vec<_>, Vec<_>) =
        changes.files.iter().partition(|(_, content)| content.is_none());
    let mut lines = Vec::new();
    for (label, files) in [("files written", written), ("files removed", removed)] {
        lines.extend(named(label, &files.into_iter().map(|(path, _)| path).collect::<Vec<_>>()));
    }
    if !changes.left_out.is_empty() {
        let mut left_out = format!("[not kept as files: {}", changes.left_out.join("; "));
        if changes.more_left_out > 0 {
            let _ = write!(left_out, "; and {} more", changes.more_left_out);
        }
        lines.push(left_out + "]");
    }
    lines
}
