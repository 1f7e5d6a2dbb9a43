//! Opening the file: its mode, its lock, its connections.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::error::{Failure, in_use, unavailable};
use super::schema;
use crate::error::StoreError;

/// How long to wait for the lock of another program, such as a backup tool.
const BUSY: Duration = Duration::from_secs(5);

/// Makes missing directories and the file, and locks it: no other process can open the store until the returned file
/// is closed.
pub(super) fn prepare(path: &Path) -> Result<File, StoreError> {
    if path.is_dir() {
        return Err(unavailable(path, "it is a directory; name a file in it"));
    }
    if let Some(directory) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| {
            unavailable(path, format!("failed to make the directory {}: {error}", directory.display()))
        })?;
    }
    let lock = lock(path)?;
    // SQLite gives its side files the mode of the file that it finds.
    private(path).map_err(|error| unavailable(path, format!("failed to open it for writing: {error}")))?;
    Ok(lock)
}

/// Locks a file beside the store's file. SQLite's own lock would also block this process's readers.
fn lock(path: &Path) -> Result<File, StoreError> {
    let beside = path.with_added_extension("lock");
    let file = private(&beside)
        .map_err(|error| unavailable(&beside, format!("failed to open the lock: {error}")))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(in_use(path)),
        Err(TryLockError::Error(error)) => Err(unavailable(&beside, format!("failed to lock it: {error}"))),
    }
}

fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The writer's connection, with the newest schema.
pub(super) fn for_writing(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
        .and_then(|mut connection| {
            set_up(&connection, path)?;
            schema::migrate(&mut connection, path)?;
            Ok(connection)
        })
        .map_err(|failure| failure.at(path, "open"))
}

/// A reader's connection.
pub(super) fn for_reading(path: &Path) -> Result<Connection, Failure> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

fn connect(path: &Path, access: OpenFlags) -> Result<Connection, Failure> {
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(32);
    // Without it a prepared statement is planned again whenever another value is bound to it, which takes several
    // times as long as to run it.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(connection)
}

fn set_up(connection: &Connection, path: &Path) -> Result<(), Failure> {
    schema::refuse_foreign(connection, path)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        let reason = format!("its file system has no write-ahead log (mode {mode}); use a local disk");
        return Err(unavailable(path, reason).into());
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Room for the last pages of a thousand conversations and logs.
    connection.pragma_update(None, "cache_size", -(16 << 10))?;
    // A single big write must not leave a big side file behind for good.
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    Ok(())
}
