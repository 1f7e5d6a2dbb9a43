//! Transactions: several documents that change together or not at all.

use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt as _;
use mongodb::bson::Document;
use mongodb::options::{ReadConcern, ReadPreference, SelectionCriteria, TransactionOptions};
use mongodb::{ClientSession, Collection, Database};
use tokio::time::{Instant, sleep, timeout_at};

use super::connection::{Connection, DEADLINE, Ready, durable};
use super::error::{Failure, is_commit_unknown, is_conflict, translate};
use crate::error::StoreError;

/// The wait before a transaction that conflicted is tried again: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(2);
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// What a transaction does. It may be done several times, and counts once.
#[async_trait]
pub(super) trait Work: Send + Sync {
    type Output: Send;

    async fn run(&self, transaction: &mut Transaction) -> Result<Self::Output, Failure>;
}

/// A transaction under way. It reads the state of one moment.
pub(super) struct Transaction {
    session: ClientSession,
    database: Database,
}

/// Runs a transaction, again and again while it conflicts with others or the connection is lost, up to the deadline.
pub(super) async fn transact<W: Work>(
    connection: &Connection,
    action: &'static str,
    work: &W,
) -> Result<W::Output, StoreError> {
    let until = Instant::now() + DEADLINE;
    let ready = connection.ready().await?;
    let mut last = None;
    let mut wait = FIRST_WAIT;
    loop {
        let failure = match timeout_at(until, attempt(ready, work)).await {
            Ok(Ok(output)) => return Ok(output),
            Ok(Err(Failure::Store(error))) => return Err(error),
            Ok(Err(Failure::Driver(error))) => error,
            Err(_) => return Err(last.unwrap_or_else(|| connection.silent())),
        };
        let error = translate(connection.servers(), action, &failure);
        if !is_conflict(&failure) || Instant::now() + wait > until {
            return Err(error);
        }
        last = Some(error);
        // Those that conflict must not meet again.
        sleep(wait.mul_f64(0.5 + jitter())).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// From 0 to 1, different for each call.
fn jitter() -> f64 {
    f64::from(jiff::Timestamp::now().subsec_nanosecond() % 1000) / 1000.0
}

async fn attempt<W: Work>(ready: &Ready, work: &W) -> Result<W::Output, Failure> {
    let mut session = ready.client.start_session().await?;
    session.start_transaction().with_options(options()).await?;
    let mut transaction = Transaction { session, database: ready.database.clone() };
    let outcome = work.run(&mut transaction).await;
    let Transaction { mut session, .. } = transaction;
    match outcome {
        Ok(output) => commit(&mut session).await.map(|()| output),
        Err(failure) => {
            // The server ends it all the same.
            let _ = session.abort_transaction().await;
            Err(failure)
        }
    }
}

/// Also a transaction that writes nothing is committed, so that what it read is what a majority has.
async fn commit(session: &mut ClientSession) -> Result<(), Failure> {
    loop {
        match session.commit_transaction().await {
            Err(error) if is_commit_unknown(&error) => sleep(FIRST_WAIT).await,
            outcome => return Ok(outcome?),
        }
    }
}

fn options() -> TransactionOptions {
    TransactionOptions::builder()
        .read_concern(ReadConcern::snapshot())
        .write_concern(durable())
        .selection_criteria(SelectionCriteria::ReadPreference(ReadPreference::Primary))
        .max_commit_time(DEADLINE)
        .build()
}

impl Transaction {
    fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(name)
    }

    pub(super) async fn find_one(
        &mut self,
        name: &str,
        filter: Document,
    ) -> Result<Option<Document>, Failure> {
        Ok(self.collection(name).find_one(filter).session(&mut self.session).await?)
    }

    pub(super) async fn find(&mut self, name: &str, filter: Document) -> Result<Vec<Document>, Failure> {
        let mut cursor = self.collection(name).find(filter).session(&mut self.session).await?;
        Ok(cursor.stream(&mut self.session).try_collect().await?)
    }

    pub(super) async fn update_one(
        &mut self,
        name: &str,
        filter: Document,
        update: Document,
    ) -> Result<(), Failure> {
        self.collection(name).update_one(filter, update).session(&mut self.session).await?;
        Ok(())
    }

    pub(super) async fn upsert(
        &mut self,
        name: &str,
        filter: Document,
        update: Document,
    ) -> Result<(), Failure> {
        self.collection(name).update_one(filter, update).upsert(true).session(&mut self.session).await?;
        Ok(())
    }

    pub(super) async fn insert(&mut self, name: &str, documents: Vec<Document>) -> Result<(), Failure> {
        if !documents.is_empty() {
            self.collection(name).insert_many(documents).session(&mut self.session).await?;
        }
        Ok(())
    }

    pub(super) async fn delete(&mut self, name: &str, filter: Document) -> Result<(), Failure> {
        self.collection(name).delete_many(filter).session(&mut self.session).await?;
        Ok(())
    }
}
