//! Says that a process serves the database, so that no copy is made of it meanwhile.

use std::sync::Arc;
use std::time::Duration;

use mongodb::bson::doc;
use tokio::time::sleep;

use super::connection::Connection;
use super::documents::millis;
use super::schema::CLAIMS;
use crate::error::StoreError;

/// How often a process says that it serves, and how long that counts.
const INTERVAL: Duration = Duration::from_secs(5);
const TERM: Duration = Duration::from_secs(15);

/// Says it again and again.
pub(super) async fn run(connection: Connection, process: Arc<str>) {
    loop {
        if let Err(error) = mark(&connection, &process).await {
            tracing::debug!(%error, "failed to say in MongoDB that this process serves the store");
        }
        sleep(INTERVAL).await;
    }
}

async fn mark(connection: &Connection, process: &str) -> Result<(), StoreError> {
    let now = connection.now().await?;
    let claims = connection.collection(CLAIMS).await?;
    let set = doc! { "$set": { "serves": true, "until": now.latest.saturating_add(millis(TERM)) } };
    let ended = doc! { "until": { "$lt": now.earliest.saturating_sub(millis(TERM)) } };
    connection
        .in_time("say that this process serves", async {
            claims.update_one(doc! { "_id": name(process) }, set).upsert(true).await?;
            // Of processes and claims that nobody ended.
            claims.delete_many(ended).await
        })
        .await
        .map(drop)
}

/// Says that this process ends.
pub(super) async fn unmark(connection: &Connection, process: &str) -> Result<(), StoreError> {
    connection.delete_one("say that this process ends", CLAIMS, doc! { "_id": name(process) }).await
}

/// Whether a process serves the database.
pub(super) async fn is_served(connection: &Connection) -> Result<bool, StoreError> {
    let now = connection.now().await?.earliest;
    let serving = doc! { "serves": true, "until": { "$gt": now } };
    Ok(connection.find_one(CLAIMS, serving).await?.is_some())
}

fn name(process: &str) -> String {
    format!("process {process}")
}
