//! The documents of a folder.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::RawDocument;
use crate::error::{Error, Result};
use crate::extract::Form;

/// The largest file that is read.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;
/// The most documents of a source.
const MAX_DOCUMENTS: usize = 100_000;
const MAX_DEPTH: usize = 32;

/// What a walk reports.
pub(crate) enum Found {
    Document(RawDocument),
    /// A document that is not read, and the reason.
    Skipped(PathBuf, String),
}

/// Calls `visit` for each document of a folder, in the order of paths, or for the one file. `prefix` begins the document ids.
///
/// Hidden entries and `node_modules` are left out. A symbolic link is followed if it is a file of the same folder.
pub(crate) fn walk(root: &Path, prefix: &str, visit: &mut dyn FnMut(Found) -> Result<()>) -> Result<()> {
    let root = root.canonicalize().map_err(|error| failed(root, &error))?;
    if root.is_file() {
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let form = Form::of_name(&name).unwrap_or(Form::Plain);
        return visit(read(&root, prefix.to_owned(), form, &root));
    }
    let mut walk = Walk { root: &root, prefix, visit, count: 0 };
    walk.folder(&root, 0)
}

struct Walk<'a> {
    root: &'a Path,
    prefix: &'a str,
    visit: &'a mut dyn FnMut(Found) -> Result<()>,
    count: usize,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            let reason = format!("it is more than {MAX_DEPTH} folders deep");
            return (self.visit)(Found::Skipped(folder.to_path_buf(), reason));
        }
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) if depth == 0 => return Err(failed(folder, &error)),
            Err(error) => return (self.visit)(Found::Skipped(folder.to_path_buf(), error.to_string())),
        };
        entries.sort_unstable_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') || name == "node_modules" {
                continue;
            }
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.folder(&entry.path(), depth + 1)?,
                Ok(_) => self.file(&entry.path(), &name)?,
                Err(error) => (self.visit)(Found::Skipped(entry.path(), error.to_string()))?,
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &str) -> Result<()> {
        let Some(form) = Form::of_name(name) else { return Ok(()) };
        self.count += 1;
        if self.count > MAX_DOCUMENTS {
            return Err(Error::TooMany(self.root.display().to_string(), MAX_DOCUMENTS));
        }
        let relative = path.strip_prefix(self.root).unwrap_or(path).to_string_lossy().into_owned();
        (self.visit)(read(path, format!("{}/{relative}", self.prefix), form, self.root))
    }
}

fn read(path: &Path, id: String, form: Form, root: &Path) -> Found {
    match read_bytes(path, root) {
        Ok(bytes) => {
            Found::Document(RawDocument { id, location: path.to_string_lossy().into_owned(), form, bytes })
        }
        Err(reason) => Found::Skipped(path.to_path_buf(), reason),
    }
}

fn read_bytes(path: &Path, root: &Path) -> Result<Vec<u8>, String> {
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    if !real.starts_with(root) {
        return Err("it is a symbolic link that leaves the folder".to_owned());
    }
    // Before it is opened, because opening a named pipe waits.
    if !fs::metadata(&real).map_err(|error| error.to_string())?.is_file() {
        return Err("it is no regular file".to_owned());
    }
    let file = File::open(&real).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20));
    }
    Ok(bytes)
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    Error::Read { path: path.to_path_buf(), reason: error.to_string() }
}
