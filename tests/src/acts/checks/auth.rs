//! Who may do what.

use anyhow::Result;
use serde_json::{Value, json};

use crate::acts::answer::Answer;
use crate::acts::document::Binding;
use crate::acts::expect::Fault;
use crate::acts::operation::Operation;
use crate::acts::run::Bench;

const MISSING: &str = "00000000-0000-0000-0000-000000000000";

/// Every operation but the public card, which says how to authenticate.
const GUARDED: [Operation; 11] = [
    Operation::Send,
    Operation::Stream,
    Operation::Get,
    Operation::List,
    Operation::Cancel,
    Operation::Subscribe,
    Operation::ExtendedCard,
    Operation::CreatePush,
    Operation::GetPush,
    Operation::ListPush,
    Operation::DeletePush,
];

/// Every operation is refused with 401 and a challenge: without credentials, and with unknown ones.
pub(super) async fn no_credentials(bench: &Bench) -> Result<(), Fault> {
    for operation in GUARDED {
        refused(bench, operation, None, 401).await?;
        refused(bench, operation, Some("nobody-knows-this-token"), 401).await?;
    }
    Ok(())
}

/// Every operation is refused with 403 to a user who may do nothing.
pub(super) async fn weak_credentials(bench: &Bench) -> Result<(), Fault> {
    for operation in GUARDED {
        refused(bench, operation, Some(&bench.tokens.weak), 403).await?;
    }
    Ok(())
}

/// The extended card is for those who may see it, over each binding alike; they see more than the public one.
pub(super) async fn extended_card(bench: &Bench) -> Result<(), Fault> {
    refused(bench, Operation::ExtendedCard, None, 401).await?;
    refused(bench, Operation::ExtendedCard, Some(&bench.tokens.weak), 403).await?;
    for binding in [Binding::Jsonrpc, Binding::Rest] {
        let mut user = bench.as_user(Some(&bench.tokens.own));
        user.binding = binding;
        let answer = user.call(Operation::ExtendedCard, &json!({})).await?;
        if !matches!(answer, Answer::Plain { status: 200, .. }) || !answer.root()["skills"].is_array() {
            return Err(Fault::new(format!(
                "a user gets no extended card over {binding:?}: {}",
                answer.root()
            )));
        }
    }
    Ok(())
}

async fn refused(bench: &Bench, operation: Operation, token: Option<&str>, wanted: u16) -> Result<(), Fault> {
    let response = bench.as_user(token).send(operation, &params(operation)).await?;
    let status = response.status().as_u16();
    if status != wanted {
        return Err(Fault::new(format!("{operation:?} was answered with HTTP {status}, not {wanted}")));
    }
    if wanted == 401 && !response.headers().contains_key("www-authenticate") {
        return Err(Fault::new(format!("the refusal of {operation:?} has no WWW-Authenticate")));
    }
    Ok(())
}

/// Parameters that are well formed: the refusal must not be for them.
fn params(operation: Operation) -> Value {
    match operation {
        Operation::Send | Operation::Stream => {
            json!({"message": {"role": "ROLE_USER", "parts": [{"text": "tck-complete-task no"}]}})
        }
        Operation::Get | Operation::Cancel | Operation::Subscribe => json!({"id": MISSING}),
        Operation::List | Operation::Card | Operation::ExtendedCard => json!({}),
        Operation::CreatePush => json!({"taskId": MISSING, "url": "https://example.com/webhook"}),
        Operation::GetPush | Operation::DeletePush => json!({"taskId": MISSING, "id": MISSING}),
        Operation::ListPush => json!({"taskId": MISSING}),
    }
}

/// Every operation on another principal's task gets the response of a missing task, except for the id in it.
pub(super) async fn indistinguishable(bench: &Bench) -> Result<(), Fault> {
    let other = bench.other_task();
    for operation in [Operation::Get, Operation::Cancel, Operation::Subscribe, Operation::ListPush] {
        let params = |id: &str| json!({"id": id, "taskId": id});
        let theirs = bench.endpoint.call(operation, &params(other)).await?;
        let missing = bench.endpoint.call(operation, &params(MISSING)).await?;
        let (Answer::Failed(theirs), Answer::Failed(missing)) = (&theirs, &missing) else {
            return Err(Fault::new(format!(
                "{operation:?} succeeded: {}, {}",
                theirs.root(),
                missing.root()
            )));
        };
        let without = |root: Value, id: &str| root.to_string().replace(id, "ID");
        let (theirs, missing) = (without(theirs.root(), other), without(missing.root(), MISSING));
        if theirs != missing {
            return Err(Fault::new(format!("{operation:?} tells them apart: {theirs} and {missing}")));
        }
    }
    Ok(())
}

/// A client's context id is refused and leaves nothing behind.
pub(super) async fn context_refused(bench: &Bench) -> Result<(), Fault> {
    let params = json!({"contextId": "client-generated-context-that-should-be-rejected"});
    let tasks = bench.endpoint.call(Operation::List, &params).await?.root();
    if tasks["tasks"].as_array().is_some_and(Vec::is_empty) {
        return Ok(());
    }
    Err(Fault::new(format!("the refused context has tasks: {tasks}")))
}
