//! What arrives at the runner's webhook.

use reqwest::StatusCode;
use serde_json::json;

use super::{Trace, shape};
use crate::acts::events;
use crate::acts::expect::Fault;
use crate::acts::receiver::{Delivery, Receiver};

/// Every delivery has the credentials that were stored for it.
pub(super) async fn credentials(trace: &Trace) -> Result<(), Fault> {
    let deliveries = whole(receiver(trace)?).await?;
    let wrong = deliveries.iter().find(|one| one.header("authorization") != "Bearer test-token");
    match wrong {
        Some(one) => {
            Err(Fault::new(format!("a delivery has Authorization {:?}", one.header("authorization"))))
        }
        None => Ok(()),
    }
}

/// The receiver, which asks for credentials, takes the server's deliveries and nobody else's.
pub(super) async fn authenticity(trace: &Trace) -> Result<(), Fault> {
    let receiver = receiver(trace)?;
    for authorization in [None, Some("Bearer wrong"), Some("Basic expected-token")] {
        let mut forged = reqwest::Client::new().post(&receiver.url).body(json!({}).to_string());
        if let Some(authorization) = authorization {
            forged = forged.header("authorization", authorization);
        }
        let status = forged.send().await.map_err(anyhow::Error::from)?.status();
        if status != StatusCode::UNAUTHORIZED {
            return Err(Fault::new(format!("the receiver answered {status} to {authorization:?}")));
        }
    }
    whole(receiver).await.map(drop)
}

/// What was refused comes again.
pub(super) async fn again(trace: &Trace) -> Result<(), Fault> {
    let deliveries = whole(receiver(trace)?).await?;
    let (refused, taken): (Vec<_>, Vec<_>) =
        deliveries.iter().partition(|delivery| delivery.status == StatusCode::SERVICE_UNAVAILABLE);
    for one in refused {
        if !taken.iter().any(|other| other.body == one.body) {
            return Err(Fault::new(format!("what was refused never came again: {}", one.body)));
        }
    }
    Ok(())
}

/// Every delivery is an event of 1.0, in JSON and under its media type.
pub(super) async fn shape(trace: &Trace) -> Result<(), Fault> {
    for delivery in whole(receiver(trace)?).await? {
        let media_type = delivery.header("content-type");
        if !media_type.starts_with("application/a2a+json") && !media_type.starts_with("application/json") {
            return Err(Fault::new(format!("a delivery has media type {media_type:?}")));
        }
        shape::event(&delivery.body)?;
    }
    Ok(())
}

fn receiver(trace: &Trace) -> Result<&Receiver, Fault> {
    trace.receiver.as_ref().ok_or_else(|| Fault::new("the test has no webhook"))
}

/// All deliveries, once one that was taken says that the task has ended.
async fn whole(receiver: &Receiver) -> Result<Vec<Delivery>, Fault> {
    let ends = |delivery: &Delivery| {
        delivery.status.is_success() && events::state(&delivery.body).is_some_and(events::is_terminal)
    };
    Ok(receiver.until("delivery of the task's end", |deliveries| deliveries.iter().any(ends)).await?)
}
