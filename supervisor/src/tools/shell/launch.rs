//! Starts the monitor of a command and reads its output and report.

use std::io::{self, PipeReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::output::BoundedOutput;
use super::request::{Report, Request, SHELL_MONITOR_COMMAND};
use crate::builtin::executable;

/// Most bytes of a report.
const REPORT_BYTES: u64 = 64 * 1024;

/// A command that runs.
#[derive(Debug)]
pub(super) struct Running {
    monitor: Child,
    output: PipeReader,
}

/// Cancels a command when it is dropped.
#[derive(Debug)]
pub(super) struct Canceller {
    _input: ChildStdin,
}

/// A command that has ended, with all processes that it has started.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) output: BoundedOutput,
    pub(super) report: Report,
}

/// Starts the monitor, without the environment of this process.
pub(super) fn start(request: &Request) -> io::Result<(Running, Canceller)> {
    let (output, write) = io::pipe()?;
    let mut command = Command::new(executable()?);
    command.arg(SHELL_MONITOR_COMMAND).env_clear().current_dir("/");
    let mut monitor =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::from(write)).spawn()?;
    // Its end of the output stays open as long as it exists.
    drop(command);
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let mut input = monitor.stdin.take().ok_or_else(|| io::Error::other("its input is missing"))?;
    // A monitor that fails early reports it.
    drop(input.write_all(&line));
    Ok((Running { monitor, output }, Canceller { _input: input }))
}

impl Running {
    /// The process of the monitor.
    pub(super) fn monitor(&self) -> u32 {
        self.monitor.id()
    }

    /// Waits for the end. Blocks.
    ///
    /// # Errors
    /// If the monitor has not reported how the command ended.
    pub(super) fn finish(mut self, output_bytes: usize) -> Result<Ended, String> {
        let mut output = BoundedOutput::new(output_bytes);
        let read = output.read(&mut self.output);
        let report = self.report();
        let status =
            self.monitor.wait().map_err(|error| format!("failed to wait for the monitor: {error}"))?;
        read.map_err(|error| format!("failed to read the output: {error}"))?;
        let report = report.ok_or_else(|| {
            format!("the monitor ended without a report ({status}): {}", output.text().trim_end())
        })?;
        Ok(Ended { output, report })
    }

    fn report(&mut self) -> Option<Report> {
        let mut line = Vec::new();
        self.monitor.stdout.take()?.take(REPORT_BYTES).read_to_end(&mut line).ok()?;
        serde_json::from_slice(&line).ok()
    }
}
