//! `store`: exports, imports, compares and re-encrypts stores.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _, stdout};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use caipe_store::{
    ExportFile, Exported, Keyring, RecordSource, RedisStore, SqliteStore, StoreReader, Transfer,
    TransferError, Verified, export, import, rotate, verify,
};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::args::{Source, StoreArgs, StoreCommand, StoreName};
use super::print;
use super::server::{self, ENCRYPTION_KEYS, redis_options};
use crate::config::environment;
use crate::secrets::{Environment, with_secrets};

/// The variables, and the directory of the Secret.
type Settings<'a> = (&'a Environment, Option<&'a str>);

/// How long a store may take to close.
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);

pub(super) async fn run(args: StoreArgs) -> anyhow::Result<ExitCode> {
    let env = with_secrets(&environment(), args.secrets.as_deref());
    let settings = (&env, args.secrets.as_deref());
    match args.command {
        StoreCommand::Export { store, file } => {
            run_export(open_existing(&store, settings).await?, &file).await
        }
        StoreCommand::Import { file, store, merge } => {
            run_import(&file, open(&store, settings).await?, merge).await
        }
        StoreCommand::Rotate { file, to } => run_rotate(&file, &to, &env).await,
        StoreCommand::Verify { source, store } => {
            let store = open_existing(&store, settings).await?;
            let code = match source {
                Source::File(file) => {
                    let mut file = spawn_blocking(move || ExportFile::open(&file)).await??;
                    run_verify(&mut file, &*store).await?
                }
                Source::Store(name) => {
                    let source = open_existing(&name, settings).await?;
                    ensure_not_in_use(&*source).await?;
                    let code = run_verify(&mut StoreReader::new(source.clone()), &*store).await?;
                    close(&*source).await?;
                    code
                }
            };
            close(&*store).await?;
            Ok(code)
        }
    }
}

/// Opens a store that must exist: opening a missing SQLite file would create it.
async fn open_existing(name: &StoreName, settings: Settings<'_>) -> anyhow::Result<Arc<dyn Transfer>> {
    if let StoreName::Sqlite(path) = name {
        ensure!(path.is_file(), "there is no SQLite file {}", path.display());
    }
    open(name, settings).await
}

async fn open(name: &StoreName, (env, secrets): Settings<'_>) -> anyhow::Result<Arc<dyn Transfer>> {
    Ok(match name.clone() {
        StoreName::Sqlite(path) => Arc::new(spawn_blocking(move || SqliteStore::open(&path)).await??),
        StoreName::Redis(database) => Arc::new(RedisStore::open_alone(&redis_options(env, &database)?)?),
        StoreName::Mongodb(database) => open_mongodb(&database, env, secrets)?,
    })
}

#[cfg(feature = "mongodb")]
fn open_mongodb(
    database: &str,
    env: &Environment,
    secrets: Option<&str>,
) -> anyhow::Result<Arc<dyn Transfer>> {
    let options = server::mongodb::options(env, &server::mongodb::database_name(database), secrets)?;
    Ok(Arc::new(server::mongodb::MongodbStore::open_alone(&options)?))
}

#[cfg(not(feature = "mongodb"))]
fn open_mongodb(_: &str, _: &Environment, _: Option<&str>) -> anyhow::Result<Arc<dyn Transfer>> {
    anyhow::bail!(server::WITHOUT_MONGODB)
}

async fn ensure_not_in_use(store: &dyn Transfer) -> anyhow::Result<()> {
    ensure!(!store.is_in_use().await?, "a running supervisor uses the store to compare with: stop it first");
    Ok(())
}

async fn close(store: &dyn Transfer) -> anyhow::Result<()> {
    timeout(CLOSE_DEADLINE, store.close()).await.context("the store did not close in time")??;
    Ok(())
}

async fn run_export(store: Arc<dyn Transfer>, file: &Path) -> anyhow::Result<ExitCode> {
    let exported = if file == Path::new("-") {
        export(store.clone(), BufWriter::new(stdout())).await?
    } else {
        write_whole(file, async |to| export(store.clone(), to).await).await?
    };
    close(&*store).await?;
    let Exported { id, conversations, tasks, facts } = exported;
    eprintln!(
        "exported {conversations} conversations, {tasks} tasks and {facts} facts; the id of the export is {id}"
    );
    Ok(ExitCode::SUCCESS)
}

/// Encrypts the values of an export again.
async fn run_rotate(from: &Path, to: &Path, env: &Environment) -> anyhow::Result<ExitCode> {
    let keys = env.get(ENCRYPTION_KEYS).filter(|keys| !keys.trim().is_empty());
    let keys = keys.with_context(|| {
        format!("there are no keys: set {ENCRYPTION_KEYS}, with the new key in the first line and the old ones below it")
    })?;
    let keys = Keyring::parse(keys)?;
    let path = from.to_owned();
    let from = spawn_blocking(move || ExportFile::open(&path)).await??;
    let Exported { id, conversations, tasks, facts } =
        write_whole(to, async |to| rotate(from, &keys, to).await).await?;
    eprintln!(
        "encrypted {conversations} conversations, {tasks} tasks and {facts} facts; the id of the new export is {id}"
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes beside the file, and gives it its name once it is complete and on the disk.
async fn write_whole(
    file: &Path,
    write: impl AsyncFnOnce(&mut BufWriter<File>) -> Result<Exported, TransferError>,
) -> anyhow::Result<Exported> {
    ensure!(!file.exists(), "{} exists: give another name, or delete it", file.display());
    let partial = file.with_added_extension("partial");
    let shown = partial.display();
    let mut options = OpenOptions::new();
    let to = options.write(true).create(true).truncate(true).mode(0o600).open(&partial);
    let mut to = BufWriter::new(to.with_context(|| format!("failed to create {shown}"))?);
    let exported = write(&mut to).await.with_context(|| format!("{shown} is not complete"))?;
    let written = to.flush().and_then(|()| to.get_ref().sync_all());
    written.with_context(|| format!("failed to write {shown}"))?;
    std::fs::rename(&partial, file).with_context(|| format!("failed to rename {shown}"))?;
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The new name, too, must survive a power failure.
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.with_context(|| format!("failed to write the directory of {}", file.display()))?;
    Ok(exported)
}

async fn run_import(file: &Path, store: Arc<dyn Transfer>, merge: bool) -> anyhow::Result<ExitCode> {
    let path = file.to_owned();
    let export = spawn_blocking(move || ExportFile::open(&path)).await??;
    let imported = import(export, &*store, merge).await?;
    close(&*store).await?;
    if imported.continued_after > 0 {
        eprintln!("continued an interrupted import after {} records", imported.continued_after);
    }
    let added = imported.conversations + imported.tasks + imported.facts - imported.left;
    eprintln!("imported {added} conversations, tasks and facts; {} were in the store already", imported.left);
    Ok(ExitCode::SUCCESS)
}

async fn run_verify(records: &mut dyn RecordSource, store: &dyn Transfer) -> anyhow::Result<ExitCode> {
    let mut closed = Ok(());
    let mut report = |difference: &str| {
        if closed.is_ok() {
            closed = print(difference);
        }
    };
    let verified = verify(records, store, &mut report).await?;
    closed?;
    let Verified { conversations, tasks, facts, differences } = verified;
    eprintln!(
        "compared {conversations} conversations, {tasks} tasks and {facts} facts with the store: {differences} differences"
    );
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
