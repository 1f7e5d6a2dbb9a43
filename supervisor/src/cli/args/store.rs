//! The flags of `store`.

use std::path::PathBuf;

use clap::Subcommand;

/// Copies of a store.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct StoreArgs {
    /// A directory with the files `REDIS_URL` and perhaps `REDIS_CA`, or `MONGODB_URI` and `MONGODB_CA`; they win over the variables
    #[arg(long = "secrets-dir", value_name = "DIR", global = true)]
    pub(in crate::cli) secrets: Option<String>,

    #[command(subcommand)]
    pub(in crate::cli) command: StoreCommand,
}

#[derive(Debug, Subcommand)]
pub(in crate::cli) enum StoreCommand {
    /// Write everything that a store has to a new file, as a backup or to move to another store
    Export {
        /// The store: sqlite:PATH, redis:DATABASE for the keys of that name in the server at `REDIS_URL`, or mongodb:DATABASE in that at `MONGODB_URI`
        store: StoreName,
        /// The file, or - for the output. Until the export is complete, its name ends in .partial
        file: PathBuf,
    },
    /// Add everything that a file has to a store. An interrupted import continues if it is started again
    Import {
        /// A file that `store export` has written
        file: PathBuf,
        /// The store, as for `store export`
        store: StoreName,
        /// Add to a store that has content; a conversation, task or fact that it has stays as it is
        #[arg(long)]
        merge: bool,
    },
    /// Encrypt the values of a file again, with the first key of `CAIPE_STORE_ENCRYPTION_KEYS`, in a new file
    Rotate {
        /// A file that `store export` has written
        file: PathBuf,
        /// The new file. Until it is complete, its name ends in .partial
        to: PathBuf,
    },
    /// Compare a file, or a store, with a store: prints each difference and fails if there are any
    Verify {
        /// A file, or a store as for `store export`
        source: Source,
        /// The store
        store: StoreName,
    },
}

/// A store on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum StoreName {
    Sqlite(PathBuf),
    /// The prefix of the keys.
    Redis(String),
    Mongodb(String),
}

impl std::str::FromStr for StoreName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // Other users of the machine can read the command line.
        if text.contains("://") {
            return Err(
                "give no URL, because it may have a password: set REDIS_URL or MONGODB_URI, and write redis:DATABASE or mongodb:DATABASE"
                    .to_owned(),
            );
        }
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("redis", database)) if !database.is_empty() => Ok(Self::Redis(database.to_owned())),
            Some(("mongodb", database)) if !database.is_empty() => Ok(Self::Mongodb(database.to_owned())),
            _ => Err(
                "write sqlite:PATH, redis:DATABASE or mongodb:DATABASE, for example redis:team-a.platform"
                    .to_owned(),
            ),
        }
    }
}

/// What a store is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum Source {
    File(PathBuf),
    Store(StoreName),
}

impl std::str::FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = ["sqlite:", "redis:", "mongodb:"];
        if kinds.iter().any(|kind| text.starts_with(kind)) || text.contains("://") {
            return text.parse().map(Self::Store);
        }
        Ok(Self::File(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_named_without_a_password() {
        assert_eq!("sqlite:a/b.db".parse(), Ok(StoreName::Sqlite("a/b.db".into())));
        assert_eq!("redis:team-a.platform".parse(), Ok(StoreName::Redis("team-a.platform".to_owned())));
        assert_eq!("a.jsonl".parse(), Ok(Source::File("a.jsonl".into())));
        assert_eq!("redis:x".parse(), Ok(Source::Store(StoreName::Redis("x".to_owned()))));
        for wrong in ["redis://:s3cret@host", "rediss://u:s3cret@host", "sqlite:", "redis:", "caipe.db"] {
            let error = wrong.parse::<StoreName>().unwrap_err();
            assert!(error.contains("redis:DATABASE") && !error.contains("s3cret"), "{wrong}: {error}");
        }
    }
}
