//! The requests that wait for a child, and the route of each of its messages.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::message::Message;
use super::refusal::{CLOSED, Refusal};

/// Most requests of a child that may be under way.
const MOST_WAITING: usize = 256;
/// Most messages that are buffered until there is a stream for them; beyond that the oldest are dropped.
const MOST_BUFFERED: usize = 64;
/// By which a notification names the subscription that it belongs to (protocol 2026-07-28).
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// The way to a client: one stream of an HTTP answer.
pub(super) type Outlet = mpsc::Sender<Message>;

/// Whether a child serves one client or all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// One: what it says goes through unchanged.
    One,
    /// All: ids and progress tokens are renamed.
    All,
}

/// Routes the messages between a child and its clients.
#[derive(Debug)]
pub(super) struct MessageRouter {
    clients: Clients,
    count: u64,
    waiting: BTreeMap<String, Waiting>,
    listener: Option<Outlet>,
    buffered: VecDeque<Message>,
    /// Why nothing can be asked any more.
    closed: Option<String>,
}

/// A request without an answer so far.
#[derive(Debug)]
struct Waiting {
    id: Value,
    token: Option<Value>,
    outlet: Outlet,
    /// Whether its stream takes other messages than the answer.
    streams: bool,
    order: u64,
}

/// Where a message goes.
#[derive(Debug)]
pub(super) enum Way {
    /// To a client.
    Out(Outlet, Message),
    /// Back to the child.
    Back(Message),
    /// It is buffered, or no client waits for it.
    Nowhere,
}

impl MessageRouter {
    pub(super) fn new(clients: Clients) -> Self {
        Self {
            clients,
            count: 0,
            waiting: BTreeMap::new(),
            listener: None,
            buffered: VecDeque::new(),
            closed: None,
        }
    }

    /// From now on the child has one client.
    pub(super) fn dedicate(&mut self) {
        self.clients = Clients::One;
    }

    /// Whether anybody waits or listens.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.listener.as_ref().is_some_and(|listener| !listener.is_closed())
    }

    /// Whether nothing was asked so far.
    pub(super) fn is_fresh(&self) -> bool {
        self.count == 0
    }

    /// Why nothing can be asked any more.
    pub(super) fn closed(&self) -> Option<&str> {
        self.closed.as_deref()
    }

    /// Takes in a request: its key here, and the message as the child gets it.
    pub(super) fn admit(
        &mut self,
        id: &Value,
        mut message: Message,
        outlet: Outlet,
        streams: bool,
    ) -> Result<(String, Message), Refusal> {
        if let Some(reason) = &self.closed {
            return Err(Refusal::unavailable(reason.clone()).of(id));
        }
        if self.waiting.len() >= MOST_WAITING {
            let reason =
                format!("{MOST_WAITING} requests are under way, which is the limit; ask again later");
            return Err(Refusal::unavailable(reason).of(id));
        }
        self.count += 1;
        let order = self.count;
        let token = token_slot(&mut message).map(|slot| slot.clone());
        if self.clients == Clients::All {
            message.insert("id".to_owned(), json!(order));
            if let Some(slot) = token_slot(&mut message) {
                *slot = json!(order);
            }
        }
        let key = message.get("id").unwrap_or(id).to_string();
        if self.waiting.contains_key(&key) {
            return Err(Refusal::invalid("a request of this id is under way; ids are used once").of(id));
        }
        self.waiting.insert(key.clone(), Waiting { id: id.clone(), token, outlet, streams, order });
        Ok((key, message))
    }

    /// Removes a request whose client has gone. Returns the cancellation for the child in the stateless era; before
    /// that, a broken connection cancels nothing (2025-11-25, "streamable HTTP: sending messages").
    pub(super) fn forget(&mut self, key: &str) -> Option<Message> {
        self.waiting.remove(key)?;
        let id: Value = serde_json::from_str(key).ok()?;
        (self.clients == Clients::All && self.closed.is_none()).then(|| {
            let params = json!({"requestId": id, "reason": "the client closed the stream"});
            object(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        })
    }

    /// Ends the stream of a request that its client cancels.
    pub(super) fn cancelled(&mut self, id: &Value) {
        self.waiting.remove(&id.to_string());
    }

    /// Returns the buffered messages, and sends later ones that belong to no request to this outlet. The previous outlet ends.
    pub(super) fn listen(&mut self, outlet: Outlet) -> VecDeque<Message> {
        self.listener = Some(outlet);
        std::mem::take(&mut self.buffered)
    }

    /// Where a message of the child goes.
    pub(super) fn sort(&mut self, message: Message) -> Way {
        match (message.contains_key("method"), message.get("id")) {
            (false, Some(id)) => {
                let key = id.to_string();
                self.answer(&key, message)
            }
            (true, Some(_)) => self.question(message),
            (true, None) => self.notification(message),
            (false, None) => Way::Nowhere,
        }
    }

    /// Ends every request; returns the error for each.
    pub(super) fn close(&mut self, reason: &str) -> Vec<(Outlet, Message)> {
        self.closed = Some(reason.to_owned());
        self.listener = None;
        self.buffered.clear();
        let waiting = std::mem::take(&mut self.waiting);
        let error = |waiting: Waiting| {
            let error = json!({"code": CLOSED, "message": reason});
            (waiting.outlet, object(json!({"jsonrpc": "2.0", "id": waiting.id, "error": error})))
        };
        waiting.into_values().map(error).collect()
    }

    fn answer(&mut self, key: &str, mut message: Message) -> Way {
        let Some(waiting) = self.waiting.remove(key) else { return Way::Nowhere };
        if let Some(slot) = subscription_slot(message.get_mut("result")) {
            *slot = waiting.id.clone();
        }
        message.insert("id".to_owned(), waiting.id);
        Way::Out(waiting.outlet, message)
    }

    /// A request of the child.
    fn question(&mut self, message: Message) -> Way {
        match self.clients {
            // About a request that is under way, if there is one: newer clients take it on such a stream only.
            Clients::One => match self.newest().or_else(|| self.listening()) {
                Some(outlet) => Way::Out(outlet, message),
                None => self.keep(message),
            },
            Clients::All => {
                let error = json!({"code": -32601, "message": "nobody in particular is there to be asked"});
                let id = message.get("id").cloned().unwrap_or_default();
                Way::Back(object(json!({"jsonrpc": "2.0", "id": id, "error": error})))
            }
        }
    }

    /// A notification of the child.
    fn notification(&mut self, mut message: Message) -> Way {
        if let Some(key) = message.get("params").and_then(|params| params.get("progressToken")).cloned() {
            return self.progress(&key, message);
        }
        if let Some(slot) = subscription_slot(message.get_mut("params")) {
            let Some(waiting) = self.waiting.get(&slot.to_string()) else { return Way::Nowhere };
            *slot = waiting.id.clone();
            return Way::Out(waiting.outlet.clone(), message);
        }
        let outlet = match self.clients {
            Clients::One => self.listening().or_else(|| self.newest()),
            // Only where it cannot be meant for anybody else.
            Clients::All => self.newest().filter(|_| self.waiting.len() == 1),
        };
        match (outlet, self.clients) {
            (Some(outlet), _) => Way::Out(outlet, message),
            (None, Clients::One) => self.keep(message),
            (None, Clients::All) => Way::Nowhere,
        }
    }

    /// Progress goes to the request whose token it bears.
    fn progress(&mut self, token: &Value, mut message: Message) -> Way {
        let waiting = match self.clients {
            Clients::One => self.waiting.values().find(|waiting| waiting.token.as_ref() == Some(token)),
            Clients::All => self.waiting.get(&token.to_string()),
        };
        let Some(waiting) = waiting.filter(|waiting| waiting.streams) else { return Way::Nowhere };
        if let (Some(own), Some(params)) = (&waiting.token, message.get_mut("params"))
            && let Some(slot) = params.get_mut("progressToken")
        {
            *slot = own.clone();
        }
        Way::Out(waiting.outlet.clone(), message)
    }

    fn newest(&self) -> Option<Outlet> {
        let open = self.waiting.values().filter(|waiting| waiting.streams && !waiting.outlet.is_closed());
        open.max_by_key(|waiting| waiting.order).map(|waiting| waiting.outlet.clone())
    }

    fn listening(&self) -> Option<Outlet> {
        self.listener.clone().filter(|listener| !listener.is_closed())
    }

    fn keep(&mut self, message: Message) -> Way {
        if self.buffered.len() == MOST_BUFFERED {
            self.buffered.pop_front();
        }
        self.buffered.push_back(message);
        Way::Nowhere
    }
}

/// Where a request says under which token it wants to hear of progress.
fn token_slot(message: &mut Message) -> Option<&mut Value> {
    message.get_mut("params")?.get_mut("_meta")?.get_mut("progressToken")
}

/// Where params or a result name a subscription.
fn subscription_slot(within: Option<&mut Value>) -> Option<&mut Value> {
    within?.get_mut("_meta")?.get_mut(SUBSCRIPTION)
}

fn object(value: Value) -> Message {
    match value {
        Value::Object(message) => message,
        _ => Message::new(),
    }
}

#[cfg(test)]
#[path = "message_router_tests.rs"]
mod tests;
