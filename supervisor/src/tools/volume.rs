//! The files of an agent's workspace on a volume: everything that its model knows below `/workspace/`.
//!
//! The directory outlives conversations, and all conversations of the agent share it. Paths are resolved below it by the kernel
//! where it can (`openat2`), so that neither `..` nor a link leaves it, also while a command changes the directory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use caipe_engine::{
    FILE_BYTES, FileResult, FileTree, PROGRESS, ToolOutput, VOLUME, VolumeView, WRITE_TOOLS, check_progress,
    missing_file, run_file_tool_on,
};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, DirEntry, FileType, OpenOptions, OpenOptionsExt};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::builtin::stoppable;

/// How long a call may take.
const DEADLINE: Duration = Duration::from_secs(30);
/// Most bytes of a file that the tools read; a command can read larger ones.
const TEXT_BYTES: u64 = 8 << 20;
/// How long the start of a run waits for what the root contains.
const VIEW_DEADLINE: Duration = Duration::from_secs(3);
/// Most entries of one folder.
const MAX_ENTRIES: usize = 100_000;
/// The deepest folder that is listed and searched.
const MAX_DEPTH: usize = 64;
/// What the names of files begin with that are being written.
const UNFINISHED: &str = ".caipe-unfinished-";
/// The age from which nobody writes such a file any more.
const ABANDONED: Duration = Duration::from_mins(10);

/// A directory with the files of one agent.
#[derive(Debug)]
pub struct Volume {
    path: PathBuf,
    /// The directory, or why it cannot be used.
    directory: Result<Dir, String>,
    compact_lines: usize,
    /// Held while a file is changed.
    writes: Arc<Mutex<()>>,
}

/// The lock of a directory: an old instance of an agent and a new one may use it at the same time.
fn lock_of(path: &Path) -> Arc<Mutex<()>> {
    static LOCKS: Mutex<BTreeMap<PathBuf, Weak<Mutex<()>>>> = Mutex::new(BTreeMap::new());
    let mut locks = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    locks.retain(|_, lock| lock.strong_count() > 0);
    let known = locks.get(path).and_then(Weak::upgrade);
    known.unwrap_or_else(|| {
        let lock = Arc::default();
        locks.insert(path.to_owned(), Arc::downgrade(&lock));
        lock
    })
}

impl Volume {
    /// The directory at this path, which is made if it does not exist. If it cannot be used, each call says so, because files that the
    /// model takes for lasting ones must not be lost. Searches with more than `compact_lines` hits are shortened. Blocks shortly.
    pub fn open(path: &Path, compact_lines: usize) -> Arc<Self> {
        let directory = std::fs::create_dir_all(path)
            .and_then(|()| path.canonicalize())
            .and_then(|path| Ok((Dir::open_ambient_dir(&path, ambient_authority())?, path)));
        let (directory, path) = match directory {
            Ok((directory, path)) => {
                remove_unfinished(&directory);
                (Ok(directory), path)
            }
            Err(error) => {
                let reason = format!("failed to use the directory {}: {error}", path.display());
                (Err(reason), path.to_owned())
            }
        };
        let writes = lock_of(&path);
        Arc::new(Self { path, directory, compact_lines, writes })
    }

    /// Why it cannot be used, if it cannot.
    pub fn fault(&self) -> Option<&str> {
        self.directory.as_ref().err().map(String::as_str)
    }

    /// The directory, if it can be used.
    pub fn path(&self) -> Option<&Path> {
        self.directory.is_ok().then_some(&*self.path)
    }

    /// What its root contains; nothing if it cannot be read soon.
    pub async fn view(self: &Arc<Self>) -> VolumeView {
        let volume = self.clone();
        let read = tokio::task::spawn_blocking(move || volume.read_view().unwrap_or_default());
        tokio::time::timeout(VIEW_DEADLINE, read).await.ok().and_then(Result::ok).unwrap_or_default()
    }

    fn read_view(&self) -> Result<VolumeView, String> {
        let tree = self.tree(CancellationToken::new())?;
        let entries = sorted(tree.directory).map_err(|error| error.to_string())?;
        let shown = |(name, entry): (String, DirEntry)| if is_folder(&entry) { name + "/" } else { name };
        let progress = tree.text(&format!("{VOLUME}{PROGRESS}")).ok().map(Cow::into_owned);
        Ok(VolumeView { entries: entries.into_iter().map(shown).collect(), progress })
    }

    fn tree(&self, cancel: CancellationToken) -> Result<Tree<'_>, String> {
        let directory = self.directory.as_ref().map_err(|reason| format!("{reason}."))?;
        Ok(Tree { directory, until: Instant::now() + DEADLINE, cancel })
    }

    /// Calls a tool for files.
    pub(super) async fn call(
        self: Arc<Self>,
        tool: String,
        arguments: Map<String, Value>,
        cancel: CancellationToken,
    ) -> ToolOutput {
        let stop = cancel.child_token();
        let _stops = stop.clone().drop_guard();
        let work = tokio::task::spawn_blocking(move || self.run(&tool, &arguments, stop));
        let answer = async {
            // A network file system can block a call of the system for ever.
            let done = tokio::time::timeout(DEADLINE + Duration::from_secs(1), work).await;
            done.map_err(|_| late())?.map_err(|error| format!("the call broke down: {error}."))?
        };
        stoppable(answer, &cancel).await
    }

    fn run(&self, tool: &str, arguments: &Map<String, Value>, cancel: CancellationToken) -> FileResult {
        let mut tree = self.tree(cancel)?;
        let writes = WRITE_TOOLS.contains(&tool);
        let _writes = writes.then(|| self.writes.lock().unwrap_or_else(PoisonError::into_inner));
        run_file_tool_on(&mut tree, tool, arguments, self.compact_lines)
    }
}

/// The files of one call.
struct Tree<'a> {
    directory: &'a Dir,
    until: Instant,
    cancel: CancellationToken,
}

impl FileTree for Tree<'_> {
    fn visit(
        &self,
        folder: &str,
        visitor: &mut dyn FnMut(&str, u64) -> ControlFlow<()>,
    ) -> Result<(), String> {
        let path = relative(folder)?;
        let metadata = match self.directory.metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            metadata => metadata.map_err(|error| failed("read", folder, &error))?,
        };
        if metadata.is_file() {
            let _ = visitor(folder, metadata.len());
            return Ok(());
        }
        let directory = self.directory.open_dir(path).map_err(|error| failed("read", folder, &error))?;
        match self.walk(&directory, &mut folder.to_owned(), 0, visitor) {
            ControlFlow::Break(Some(fault)) => Err(fault),
            ControlFlow::Break(None) | ControlFlow::Continue(()) => Ok(()),
        }
    }

    fn text(&self, path: &str) -> Result<Cow<'_, str>, String> {
        read(self.directory, relative(path)?).map(Cow::Owned).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing_file(path),
            _ => failed("read", path, &error),
        })
    }

    fn store(&mut self, path: &str, content: String) -> FileResult {
        if path.strip_prefix(VOLUME) == Some(PROGRESS) {
            check_progress(&content)?;
        }
        if content.len() > FILE_BYTES {
            let bytes = content.len();
            return Err(format!(
                "failed to write {path}: {bytes} bytes are more than the {FILE_BYTES} that a file may have."
            ));
        }
        write(self.directory, relative(path)?, &content, || self.is_late()).map_err(|error| {
            match error.kind() {
                io::ErrorKind::TimedOut => late(),
                _ => failed("write", path, &error),
            }
        })?;
        Ok(format!("Wrote {} bytes to {path}.", content.len()))
    }
}

impl Tree<'_> {
    /// Whether nobody waits for the call any more.
    fn is_late(&self) -> bool {
        self.cancel.is_cancelled() || Instant::now() >= self.until
    }

    /// Visits the files of a directory. Links are left out. Breaks with a fault if it takes too long.
    fn walk(
        &self,
        directory: &Dir,
        path: &mut String,
        depth: usize,
        visitor: &mut dyn FnMut(&str, u64) -> ControlFlow<()>,
    ) -> ControlFlow<Option<String>> {
        let length = path.len();
        let entries = match sorted(directory) {
            Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
                return ControlFlow::Break(Some(failed("read", path, &error)));
            }
            // A directory that vanishes meanwhile has no files.
            entries => entries.unwrap_or_default(),
        };
        for (name, entry) in entries {
            if self.is_late() {
                return ControlFlow::Break(Some(late()));
            }
            path.push('/');
            path.push_str(&name);
            if is_folder(&entry) {
                if depth < MAX_DEPTH
                    && let Ok(folder) = entry.open_dir()
                {
                    self.walk(&folder, path, depth + 1, visitor)?;
                }
            } else if let Ok(metadata) = entry.metadata()
                && metadata.is_file()
                && visitor(path, metadata.len()).is_break()
            {
                return ControlFlow::Break(None);
            }
            path.truncate(length);
        }
        ControlFlow::Continue(())
    }
}

/// The entries of a directory by their names, without those that are being written and those that no path of the model can name.
///
/// # Errors
/// If it cannot be read, or has more than [`MAX_ENTRIES`].
fn sorted(directory: &Dir) -> io::Result<Vec<(String, DirEntry)>> {
    let is_shown = |name: &String| !name.starts_with(UNFINISHED) && !name.chars().any(char::is_control);
    let mut entries = Vec::new();
    for (count, entry) in directory.entries()?.enumerate() {
        if count == MAX_ENTRIES {
            let fault = format!("a folder has more than {MAX_ENTRIES} entries");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, fault));
        }
        let Ok(entry) = entry else { continue };
        let name = entry.file_name().into_string().ok().filter(is_shown);
        entries.extend(name.map(|name| (name, entry)));
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries)
}

fn is_folder(entry: &DirEntry) -> bool {
    // Not every file system says in the directory what an entry is.
    let is_unknown = |kind: &FileType| !kind.is_dir() && !kind.is_file() && !kind.is_symlink();
    entry.file_type().is_ok_and(|kind| {
        kind.is_dir() || (is_unknown(&kind) && entry.metadata().is_ok_and(|metadata| metadata.is_dir()))
    })
}

fn read(directory: &Dir, path: &Path) -> io::Result<String> {
    let refused = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut options = OpenOptions::new();
    options.read(true);
    // Opening a pipe does not wait.
    #[cfg(unix)]
    options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = directory.open_with(path, &options)?;
    if !file.metadata()?.is_file() {
        return Err(refused("it is no regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(TEXT_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > TEXT_BYTES {
        return Err(refused(format!("it has more than {TEXT_BYTES} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| refused("it is no UTF-8 text".to_owned()))
}

/// Writes a file whole: a reader sees the old text or the new one, also after a crash. Nothing is written once `is_late`: the model has
/// read that the call failed.
fn write(directory: &Dir, path: &Path, content: &str, is_late: impl Fn() -> bool) -> io::Result<()> {
    if directory.metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is no regular file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        directory.create_dir_all(folder)?;
    }
    let unfinished = format!("{UNFINISHED}{}", uuid::Uuid::new_v4());
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    // Commands cannot change modes.
    #[cfg(unix)]
    options.mode(if content.starts_with("#!") { 0o755 } else { 0o644 });
    let mut file = directory.open_with(&unfinished, &options)?;
    let written = file
        .write_all(content.as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| if is_late() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(()) })
        .and_then(|()| directory.rename(&unfinished, directory, path))
        .and_then(|()| directory.open(folder.unwrap_or(Path::new("."))))
        .and_then(|folder| folder.sync_all());
    if written.is_err() {
        // The next start removes it otherwise.
        let _ = directory.remove_file(&unfinished);
    }
    written
}

/// Removes what processes have left that ended while they wrote.
fn remove_unfinished(directory: &Dir) {
    let entries = directory.entries().into_iter().flatten().filter_map(Result::ok);
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED)) {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.into_std().elapsed().ok());
        if age.is_some_and(|age| age >= ABANDONED) {
            let _ = entry.remove_file();
        }
    }
}

/// A path of the model below the directory.
fn relative(path: &str) -> Result<&Path, String> {
    let rest = path
        .strip_prefix(VOLUME)
        .ok_or_else(|| format!("failed to use {path}: it is not below {VOLUME}."))?;
    let rest = rest.trim_start_matches('/');
    Ok(Path::new(if rest.is_empty() { "." } else { rest }))
}

fn failed(what: &str, path: &str, error: &io::Error) -> String {
    format!("failed to {what} {path}: {error}.")
}

fn late() -> String {
    format!("the call took longer than {} s: name a smaller folder.", DEADLINE.as_secs())
}

#[cfg(test)]
#[path = "volume_tests.rs"]
mod tests;
