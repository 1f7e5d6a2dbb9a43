//! Push configurations.

use async_trait::async_trait;
use mongodb::bson::{Document, doc};

use super::connection::Connection;
use super::documents::{column, number, text};
use super::error::Failure;
use super::schema::{PUSHES, TASKS};
use super::transaction::{Transaction, Work, transact};
use crate::commit_rules::Refusal;
use crate::error::StoreError;
use crate::push::{PushChange, PushRecord};

const ACTION: &str = "keep a push configuration";

struct Put(PushRecord);

#[async_trait]
impl Work for Put {
    type Output = ();

    async fn run(&self, to: &mut Transaction) -> Result<(), Failure> {
        let PushRecord { task, id, body, delivered } = &self.0;
        if to.find_one(TASKS, doc! { "_id": task }).await?.is_none() {
            return Err(Refusal::UnknownTask(task.clone()).into());
        }
        // Conflicts with the removal of the task.
        to.update_one(TASKS, doc! { "_id": task }, doc! { "$inc": { "changes": 1_i64 } }).await?;
        let set = doc! { "body": body, "delivered": column(*delivered) };
        to.upsert(PUSHES, doc! { "task": task, "push": id }, doc! { "$set": set }).await
    }
}

pub(super) async fn change(connection: &Connection, change: PushChange) -> Result<(), StoreError> {
    match change {
        PushChange::Put(push) => transact(connection, ACTION, &Put(push)).await,
        PushChange::Delivered { task, id, seq } => {
            let update = doc! { "$max": { "delivered": column(seq) } };
            connection.update_one(ACTION, PUSHES, doc! { "task": task, "push": id }, update).await.map(drop)
        }
        PushChange::Delete { task, id } => {
            connection.delete_one(ACTION, PUSHES, doc! { "task": task, "push": id }).await
        }
    }
}

/// The configurations that match, by task and id.
pub(super) async fn find(connection: &Connection, filter: Document) -> Result<Vec<PushRecord>, StoreError> {
    let found = connection.find(PUSHES, filter, mongodb::options::FindOptions::default()).await?;
    let mut pushes = found.iter().map(push).collect::<Result<Vec<_>, _>>()?;
    pushes.sort_unstable_by(|a, b| (&a.task, &a.id).cmp(&(&b.task, &b.id)));
    Ok(pushes)
}

fn push(document: &Document) -> Result<PushRecord, StoreError> {
    let text = |field| text(document, field).map(str::to_owned);
    let delivered = number(document, "delivered")?;
    Ok(PushRecord { task: text("task")?, id: text("push")?, body: text("body")?, delivered })
}
