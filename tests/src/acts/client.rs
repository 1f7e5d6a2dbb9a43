//! Our own client under test: what it makes of an answer.

use anyhow::{Context, Result, bail};
use caipe_a2a::card;
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions};
use caipe_a2a::model::{Message, SendMessageRequest};
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};

use super::answer::Answer;
use super::document::ClientResponse;
use super::failure::Failure;
use super::operation::Operation;
use super::stand_in::StandIn;

/// What the client decodes from the payload, written back as JSON of 1.0.
pub async fn decode(step: &ClientResponse) -> Result<Answer> {
    let payload = &step.wire_payload;
    let operation = Operation::of(&step.operation, &Value::Null)?;
    if matches!(operation, Operation::Card | Operation::ExtendedCard) {
        return parsed(&card::parse(payload.to_string().as_bytes())?);
    }
    let server = StandIn::start(json!({"name": "stand-in"}), payload.clone()).await?;
    let client = connect(&server).await?;
    match operation {
        Operation::Send => answer_of(client.send(request()).await),
        Operation::Get => answer_of(client.get("any", None).await),
        Operation::Cancel => answer_of(client.cancel("any").await),
        other => bail!("the client is not asked to decode the answer of {other:?}"),
    }
}

/// The client, connected to a stand-in.
pub async fn connect(server: &StandIn) -> Result<A2aClient> {
    let http = reqwest::Client::builder().no_proxy().build()?;
    A2aClient::connect(&server.url, http, ClientOptions::default())
        .await
        .context("the client failed to connect")
}

/// A request of no importance.
pub fn request() -> SendMessageRequest {
    SendMessageRequest::new(Message::user("any", "any"))
}

fn answer_of<T: Serialize>(result: Result<T, ClientError>) -> Result<Answer> {
    match result {
        Ok(value) => parsed(&value),
        Err(ClientError::Remote(error)) => {
            let error = json!({"code": error.code, "message": error.message, "data": error.data});
            Ok(Answer::Failed(Failure::of_jsonrpc(200, &error)))
        }
        Err(error) => Err(error).context("the client failed to decode the payload"),
    }
}

fn parsed(value: &impl Serialize) -> Result<Answer> {
    Ok(Answer::Plain { status: 200, headers: HeaderMap::new(), root: serde_json::to_value(value)? })
}
