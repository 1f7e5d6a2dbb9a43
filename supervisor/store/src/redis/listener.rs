//! Tells the readers of this process what other processes change.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use redis::aio::PubSubSink;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::connection::Connection;
use crate::live_exchange::{LiveExchange, READS};
use crate::notifier::Watchers;

/// The wait before a lost subscription is made again: at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// How often the connections are tested, and how long a step of it may take.
const PING_INTERVAL: Duration = Duration::from_secs(5);
const DEADLINE: Duration = Duration::from_secs(5);

/// Subscribes, and again after each loss. Then every reader reads once, because messages may have been missed.
pub(super) async fn run(
    connection: Connection,
    watchers: Arc<Watchers>,
    live: Arc<LiveExchange>,
    sender: Arc<str>,
) {
    let mut wait = FIRST_WAIT;
    loop {
        match listen(&connection, &watchers, &live, &sender, &mut wait).await {
            Ok(()) => tracing::debug!("the subscription to changes in Redis ended"),
            Err(reason) => {
                tracing::debug!(reason, "failed to subscribe to changes in Redis");
            }
        }
        sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

/// Passes messages on until the connection is lost.
async fn listen(
    connection: &Connection,
    watchers: &Watchers,
    live: &LiveExchange,
    own: &str,
    wait: &mut Duration,
) -> Result<(), String> {
    let [events, controls, reads, texts] =
        ["events", "controls", READS, &live.channel()].map(|name| connection.key(name));
    let subscribe = async {
        let client = connection.client().await.map_err(|error| error.to_string())?;
        let subscription = async {
            let mut subscription = client.get_async_pubsub().await?;
            subscription.subscribe(&[&events, &controls, &reads, &texts]).await?;
            redis::RedisResult::Ok(subscription)
        };
        subscription.await.map_err(|error| error.to_string())
    };
    let subscription = timeout(DEADLINE, subscribe).await.map_err(|error| error.to_string())?;
    let (mut sink, mut messages) = subscription?.split();
    let address = connection.address().unwrap_or_default();
    *wait = FIRST_WAIT;
    watchers.notify_all();
    let mut pings = interval(PING_INTERVAL);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            message = messages.next() => {
                let Some(message) = message else { return Ok(()) };
                let payload: String = message.get_payload().map_err(|error| error.to_string())?;
                let channel = message.get_channel_name();
                if channel == texts {
                    live.receive(&payload);
                    continue;
                }
                match payload.split_once(' ').filter(|(sender, _)| *sender != own) {
                    Some((sender, task)) if channel == reads => live.note(sender, task),
                    Some((_, task)) if channel == controls => watchers.controls.notify(task),
                    Some((_, task)) => watchers.events.notify(task),
                    None => {}
                }
            }
            _ = pings.tick() => {
                // The keys may be at another server now, whose subscribers show that the store is in use.
                if connection.address().is_some_and(|now| now != address) {
                    return Ok(());
                }
                live.refresh();
                let (subscribed, ()) = tokio::join!(ping(&mut sink), connection.ping());
                subscribed?;
            }
        }
    }
}

/// Finds a connection that is lost without a sign.
async fn ping(sink: &mut PubSubSink) -> Result<(), String> {
    let answer = timeout(DEADLINE, sink.ping::<redis::Value>()).await.map_err(|error| error.to_string())?;
    answer.map(drop).map_err(|error| error.to_string())
}
