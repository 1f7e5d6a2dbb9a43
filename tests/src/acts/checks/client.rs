//! What our client does with a card. The card's interfaces give way to those of a stand-in, for no test's card
//! names one that can be reached.

use futures::StreamExt;
use serde_json::{Value, json};

use crate::acts::client::{connect, request};
use crate::acts::document::Case;
use crate::acts::expect::Fault;
use crate::acts::stand_in::StandIn;

/// Once it has the extended card, the client goes by that one.
pub(super) async fn extended_card(case: &Case) -> Result<(), Fault> {
    let (public, extended) = (payload(case, 0), payload(case, 1));
    let server = StandIn::start(public, json!({"jsonrpc": "2.0", "id": 1, "result": extended})).await?;
    let client = connect(&server).await?;
    if client.card().capabilities.streaming || !client.card().skills.is_empty() {
        return Err(Fault::new("the client does not go by the public card"));
    }
    client.extended_card().await.map_err(anyhow::Error::from)?;
    let card = client.card();
    if card.capabilities.streaming && card.skills.iter().any(|skill| skill.id == "extended-skill") {
        return Ok(());
    }
    Err(Fault::new(format!("the client does not go by the extended card but by {}", json!(*card))))
}

/// A client that is to follow an answer does not ask an agent for a stream that has none to offer.
pub(super) async fn capabilities(case: &Case) -> Result<(), Fault> {
    let task = json!({"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"task": task}});
    let server = StandIn::start(payload(case, 0), answer).await?;
    let events: Vec<_> = connect(&server).await?.follow(request()).collect().await;
    match (events.as_slice(), server.methods().as_slice()) {
        ([Ok(_)], [method]) if method == "SendMessage" => Ok(()),
        (events, methods) => {
            Err(Fault::new(format!("the client called {methods:?} and got {} events", events.len())))
        }
    }
}

fn payload(case: &Case, step: usize) -> Value {
    let response = case.test.steps.get(step).and_then(|step| step.client_response.as_ref());
    response.map(|response| response.wire_payload.clone()).unwrap_or_default()
}
