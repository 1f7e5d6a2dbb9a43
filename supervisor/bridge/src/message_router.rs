//! Routes the messages between a child and its clients: matches answers to requests and renames ids.

use std::collections::{BTreeMap, VecDeque};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::error::{BridgeError, CLOSED};
use super::message::Message;

/// The limit of requests without an answer.
const MAX_PENDING: usize = 256;
/// The limit of messages that are buffered until there is a stream for them; beyond it the oldest are dropped.
const MAX_BUFFERED: usize = 64;
/// The member by which a notification names the subscription that it belongs to (protocol 2026-07-28).
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// Sends messages to one stream of a client.
pub(crate) type MessageSender = mpsc::Sender<Message>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clients {
    /// Messages are forwarded unchanged.
    One,
    /// Ids and progress tokens are renamed.
    All,
}

#[derive(Debug)]
pub(crate) struct MessageRouter {
    clients: Clients,
    count: u64,
    pending: BTreeMap<String, PendingRequest>,
    listener: Option<MessageSender>,
    buffered: VecDeque<Message>,
    /// The reason, once the child accepts no more requests.
    closed: Option<String>,
}

#[derive(Debug)]
struct PendingRequest {
    id: Value,
    token: Option<Value>,
    sender: MessageSender,
    /// Whether its stream carries other messages than the answer.
    streams: bool,
    order: u64,
}

#[derive(Debug)]
pub(crate) enum Destination {
    Client(MessageSender, Message),
    /// An answer back to the child.
    Child(Message),
    /// The message is buffered or dropped.
    None,
}

impl MessageRouter {
    pub(crate) fn new(clients: Clients) -> Self {
        Self {
            clients,
            count: 0,
            pending: BTreeMap::new(),
            listener: None,
            buffered: VecDeque::new(),
            closed: None,
        }
    }

    pub(crate) fn dedicate(&mut self) {
        self.clients = Clients::One;
    }

    /// Whether a request is pending or a client listens.
    pub(crate) fn is_busy(&self) -> bool {
        !self.pending.is_empty() || self.listener.as_ref().is_some_and(|listener| !listener.is_closed())
    }

    /// Whether there was no request so far.
    pub(crate) fn is_unused(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// Adds a request. Returns its key, and the message for the child.
    pub(crate) fn register(
        &mut self,
        id: &Value,
        mut message: Message,
        sender: MessageSender,
        streams: bool,
    ) -> Result<(String, Message), BridgeError> {
        if let Some(reason) = &self.closed {
            return Err(BridgeError::unavailable(reason.clone()).for_request(id));
        }
        if self.pending.len() >= MAX_PENDING {
            let reason = format!("{MAX_PENDING} requests are under way, which is the limit; ask again later");
            return Err(BridgeError::unavailable(reason).for_request(id));
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
        if self.pending.contains_key(&key) {
            return Err(BridgeError::invalid_request("a request of this id is under way; ids are used once")
                .for_request(id));
        }
        self.pending.insert(key.clone(), PendingRequest { id: id.clone(), token, sender, streams, order });
        Ok((key, message))
    }

    /// Removes a request whose client has gone. Returns the cancellation for the child in the stateless era; before
    /// that, a broken connection cancels nothing (2025-11-25, "streamable HTTP: sending messages").
    pub(crate) fn remove(&mut self, key: &str) -> Option<Message> {
        self.pending.remove(key)?;
        let id: Value = serde_json::from_str(key).ok()?;
        (self.clients == Clients::All && self.closed.is_none()).then(|| {
            let params = json!({"requestId": id, "reason": "the client closed the stream"});
            object(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
        })
    }

    /// Ends the stream of a request that the client cancels.
    pub(crate) fn cancel(&mut self, id: &Value) {
        self.pending.remove(&id.to_string());
    }

    /// Returns the buffered messages, and sends later ones that belong to no request to this sender. The previous sender ends.
    pub(crate) fn listen(&mut self, sender: MessageSender) -> VecDeque<Message> {
        self.listener = Some(sender);
        std::mem::take(&mut self.buffered)
    }

    /// The destination of a message of the child.
    pub(crate) fn route(&mut self, message: Message) -> Destination {
        match (message.contains_key("method"), message.get("id")) {
            (false, Some(id)) => self.answer(&id.to_string(), message),
            (true, Some(_)) => self.child_request(message),
            (true, None) => self.notification(message),
            (false, None) => Destination::None,
        }
    }

    /// Ends every request; returns the error for each.
    pub(crate) fn close(&mut self, reason: &str) -> Vec<(MessageSender, Message)> {
        self.closed = Some(reason.to_owned());
        self.listener = None;
        self.buffered.clear();
        let pending = std::mem::take(&mut self.pending);
        let error = |pending: PendingRequest| {
            let error = json!({"code": CLOSED, "message": reason});
            (pending.sender, object(json!({"jsonrpc": "2.0", "id": pending.id, "error": error})))
        };
        pending.into_values().map(error).collect()
    }

    fn answer(&mut self, key: &str, mut message: Message) -> Destination {
        let Some(pending) = self.pending.remove(key) else { return Destination::None };
        if let Some(slot) = subscription_slot(message.get_mut("result")) {
            *slot = pending.id.clone();
        }
        message.insert("id".to_owned(), pending.id);
        Destination::Client(pending.sender, message)
    }

    fn child_request(&mut self, message: Message) -> Destination {
        match self.clients {
            // Newer clients accept requests of the server on the stream of a pending request only.
            Clients::One => match self.newest_stream().or_else(|| self.open_listener()) {
                Some(sender) => Destination::Client(sender, message),
                None => self.buffer(message),
            },
            Clients::All => {
                let error = json!({"code": -32601, "message": "several clients share this server, so there is no client to ask"});
                let id = message.get("id").cloned().unwrap_or_default();
                Destination::Child(object(json!({"jsonrpc": "2.0", "id": id, "error": error})))
            }
        }
    }

    fn notification(&mut self, mut message: Message) -> Destination {
        if let Some(key) = message.get("params").and_then(|params| params.get("progressToken")).cloned() {
            return self.progress(&key, message);
        }
        if let Some(slot) = subscription_slot(message.get_mut("params")) {
            let Some(pending) = self.pending.get(&slot.to_string()) else { return Destination::None };
            *slot = pending.id.clone();
            return Destination::Client(pending.sender.clone(), message);
        }
        let sender = match self.clients {
            Clients::One => self.open_listener().or_else(|| self.newest_stream()),
            // Forwarded only if it cannot belong to another client.
            Clients::All => self.newest_stream().filter(|_| self.pending.len() == 1),
        };
        match (sender, self.clients) {
            (Some(sender), _) => Destination::Client(sender, message),
            (None, Clients::One) => self.buffer(message),
            (None, Clients::All) => Destination::None,
        }
    }

    /// Routes progress to the request with this token.
    fn progress(&mut self, token: &Value, mut message: Message) -> Destination {
        let pending = match self.clients {
            Clients::One => self.pending.values().find(|pending| pending.token.as_ref() == Some(token)),
            Clients::All => self.pending.get(&token.to_string()),
        };
        let Some(pending) = pending.filter(|pending| pending.streams) else { return Destination::None };
        if let (Some(own), Some(params)) = (&pending.token, message.get_mut("params"))
            && let Some(slot) = params.get_mut("progressToken")
        {
            *slot = own.clone();
        }
        Destination::Client(pending.sender.clone(), message)
    }

    fn newest_stream(&self) -> Option<MessageSender> {
        let open = self.pending.values().filter(|pending| pending.streams && !pending.sender.is_closed());
        open.max_by_key(|pending| pending.order).map(|pending| pending.sender.clone())
    }

    fn open_listener(&self) -> Option<MessageSender> {
        self.listener.clone().filter(|listener| !listener.is_closed())
    }

    fn buffer(&mut self, message: Message) -> Destination {
        if self.buffered.len() == MAX_BUFFERED {
            self.buffered.pop_front();
        }
        self.buffered.push_back(message);
        Destination::None
    }
}

/// The progress token of a request.
fn token_slot(message: &mut Message) -> Option<&mut Value> {
    message.get_mut("params")?.get_mut("_meta")?.get_mut("progressToken")
}

/// The subscription id of params or a result.
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
