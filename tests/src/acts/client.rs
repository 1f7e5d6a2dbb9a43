//! Our own client under test: what it makes of an answer.

use anyhow::{Context, Result, bail};
use axum::routing::{get, post};
use axum::{Json, Router};
use caipe_a2a::card;
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions};
use caipe_a2a::model::{Message, SendMessageRequest};
use reqwest::header::HeaderMap;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::answer::Answer;
use super::document::ClientResponse;
use super::failure::Failure;
use super::operation::Operation;

/// What the client decodes from the payload, written back as JSON of 1.0.
pub async fn decode(step: &ClientResponse) -> Result<Answer> {
    let payload = &step.wire_payload;
    let operation = Operation::of(&step.operation, &Value::Null)?;
    if matches!(operation, Operation::Card | Operation::ExtendedCard) {
        let card = card::parse(payload.to_string().as_bytes())?;
        return parsed(&card);
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let base = format!("http://{}", listener.local_addr()?);
    let server = tokio::spawn(axum::serve(listener, stand_in(&base, payload)).into_future()).abort_handle();
    let client = A2aClient::connect(&base, reqwest::Client::new(), ClientOptions::default()).await;
    let answer = match client {
        Ok(client) => call(&client, operation).await,
        Err(error) => Err(error.into()),
    };
    server.abort();
    answer
}

async fn call(client: &A2aClient, operation: Operation) -> Result<Answer> {
    match operation {
        Operation::Send => told(client.send(request()).await),
        Operation::Get => told(client.get("any", None).await),
        Operation::Cancel => told(client.cancel("any").await),
        other => bail!("the client is not asked to decode the answer of {other:?}"),
    }
}

fn request() -> SendMessageRequest {
    SendMessageRequest::new(Message::user("any", "any"))
}

fn told<T: Serialize>(result: Result<T, ClientError>) -> Result<Answer> {
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

/// A server that answers every request with `payload`.
fn stand_in(base: &str, payload: &Value) -> Router {
    let interface = json!({"url": base, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    let card = json!({"name": "stand-in", "supportedInterfaces": [interface]});
    let payload = payload.clone();
    Router::new().route(card::PATH, get(|| async { Json(card) })).route("/", post(|| async { Json(payload) }))
}
