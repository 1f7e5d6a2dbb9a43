//! Lines that the user types, and the history of them.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};

/// How many lines the history keeps.
const HISTORY: usize = 1000;

/// The result of asking for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    Closed,
}

/// The source of lines.
#[async_trait]
pub(super) trait Prompt: Send {
    /// The next line. `remembered` ones go into the history; answers to forms do not belong there.
    async fn read(&mut self, prompt: String, remembered: bool) -> io::Result<Typed>;
}

/// Reads lines from the terminal.
///
/// Dropping it restores the terminal: a caller that leaves while a line is typed leaves the thread that
/// reads it behind, and with it the modes in which it reads.
pub(super) struct Lines {
    editor: Option<Editor<(), FileHistory>>,
    history: Option<PathBuf>,
    modes: Option<Termios>,
}

impl Drop for Lines {
    fn drop(&mut self) {
        if let Some(modes) = &self.modes {
            // Nothing is left to try if that fails.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, modes);
        }
    }
}

impl Lines {
    /// Reads from the terminal, with the history in `history` if it can be used.
    pub(super) fn open(history: Option<PathBuf>) -> io::Result<Self> {
        let builder = Config::builder().max_history_size(HISTORY).map_err(io::Error::other)?;
        let config = builder.history_ignore_space(true).auto_add_history(false).build();
        let mut editor = Editor::with_config(config).map_err(io::Error::other)?;
        let history = history.filter(|path| match prepare(path) {
            Ok(()) => editor.load_history(path).is_ok(),
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "no history of what is typed");
                false
            }
        });
        Ok(Self { editor: Some(editor), history, modes: tcgetattr(io::stdin()).ok() })
    }
}

#[async_trait]
impl Prompt for Lines {
    async fn read(&mut self, prompt: String, remembered: bool) -> io::Result<Typed> {
        let Some(mut editor) = self.editor.take() else { return Ok(Typed::Closed) };
        let history = self.history.clone().filter(|_| remembered);
        // A thread that waits for the terminal cannot be cancelled; it returns the editor with the line.
        let read = move || {
            let result = editor.readline(&prompt);
            if let (Ok(line), Some(history)) = (&result, &history) {
                remember(&mut editor, line, history);
            }
            (result, editor)
        };
        let (result, editor) = tokio::task::spawn_blocking(read).await?;
        self.editor = Some(editor);
        match result {
            Ok(line) => Ok(Typed::Line(line)),
            Err(ReadlineError::Interrupted) => Ok(Typed::Interrupted),
            Err(ReadlineError::Eof) => Ok(Typed::Closed),
            Err(ReadlineError::Io(error)) => Err(error),
            Err(error) => Err(io::Error::other(error)),
        }
    }
}

fn remember(editor: &mut Editor<(), FileHistory>, line: &str, history: &Path) {
    let added = !line.trim().is_empty() && editor.add_history_entry(line).unwrap_or(false);
    if added && let Err(error) = editor.append_history(history) {
        tracing::debug!(%error, "the history was not saved");
    }
}

/// Makes the file and its directory for the user alone: people paste secrets into prompts.
fn prepare(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    OpenOptions::new().create(true).append(true).mode(0o600).open(path).map(drop)
}

/// Where the history is: `caipe/history` under `XDG_STATE_HOME`, else under `~/.local/state`. A relative state
/// home is void (XDG base directories).
pub(super) fn history_path(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    Some(state.join("caipe/history"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_history_is_where_the_state_is() {
        let path = |state: Option<&str>, user_folder: Option<&str>| {
            history_path(|name| if name == "HOME" { user_folder } else { state }.map(PathBuf::from))
        };
        assert_eq!(path(Some("/s"), Some("/h")), Some("/s/caipe/history".into()));
        assert_eq!(path(None, Some("/h")), Some("/h/.local/state/caipe/history".into()));
        assert_eq!(path(Some("relative"), Some("/h")), Some("/h/.local/state/caipe/history".into()));
        assert_eq!(path(None, None), None);
    }

    #[test]
    fn the_history_is_for_its_user_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("caipe/history");
        prepare(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(path.parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
