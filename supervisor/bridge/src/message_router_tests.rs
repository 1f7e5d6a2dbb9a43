use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::message::Message;
use super::{Clients, Destination, MAX_BUFFERED, MAX_PENDING, MessageRouter};

type Messages = mpsc::Receiver<Message>;

fn message(value: &Value) -> Message {
    value.as_object().unwrap().clone()
}

fn request(id: &Value) -> Message {
    let params = json!({"name": "x", "_meta": {"progressToken": "mine"}});
    message(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// Registers a request. Returns the message for the child, and the messages for the client.
fn register(router: &mut MessageRouter, id: &Value) -> (Message, Messages) {
    let (sender, messages) = mpsc::channel(8);
    let (_, sent) = router.register(id, request(id), sender, true).unwrap();
    (sent, messages)
}

/// Delivers a message of the child and returns its destination.
fn route(router: &mut MessageRouter, value: Value) -> &'static str {
    let Value::Object(message) = value else { panic!("no message") };
    match router.route(message) {
        Destination::Client(sender, message) => {
            sender.try_send(message).unwrap();
            "client"
        }
        Destination::Child(_) => "child",
        Destination::None => "none",
    }
}

fn read(messages: &mut Messages) -> Option<Value> {
    messages.try_recv().ok().map(Value::Object)
}

#[test]
fn two_clients_may_choose_the_same_names() {
    let mut router = MessageRouter::new(Clients::All);
    let ((first, mut one), (second, mut two)) =
        (register(&mut router, &json!(7)), register(&mut router, &json!(7)));
    assert_ne!(first["id"], second["id"]);
    let token = &second["params"]["_meta"]["progressToken"];
    let progress = |token: &Value| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
    assert_eq!(route(&mut router, progress(token)), "client");
    assert_eq!(read(&mut two).unwrap()["params"]["progressToken"], "mine");
    assert_eq!(route(&mut router, progress(&json!("mine"))), "none");
    for (id, messages, text) in [(&second["id"], &mut two, "b"), (&first["id"], &mut one, "a")] {
        assert_eq!(route(&mut router, json!({"jsonrpc": "2.0", "id": id, "result": text})), "client");
        assert_eq!(read(messages).unwrap(), json!({"jsonrpc": "2.0", "id": 7, "result": text}));
        assert!(messages.is_closed(), "the stream is open after the answer");
    }
    assert!(!router.is_busy());
}

#[test]
fn a_notification_of_a_subscription_goes_to_its_request() {
    let mut router = MessageRouter::new(Clients::All);
    let ((first, mut one), (second, _two)) =
        (register(&mut router, &json!("s")), register(&mut router, &json!("s")));
    assert_ne!(first["id"], second["id"]);
    let meta = json!({"io.modelcontextprotocol/subscriptionId": first["id"]});
    let notification = |meta: &Value| json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}});
    assert_eq!(route(&mut router, notification(&meta)), "client");
    let read = read(&mut one).unwrap();
    assert_eq!(read["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    assert_eq!(
        route(&mut router, notification(&json!({"io.modelcontextprotocol/subscriptionId": 99}))),
        "none"
    );
}

#[test]
fn messages_of_a_single_client_are_forwarded_unchanged() {
    let mut router = MessageRouter::new(Clients::One);
    let (sent, mut messages) = register(&mut router, &json!("7"));
    assert_eq!(sent, request(&json!("7")));
    let (sender, _unread) = mpsc::channel(1);
    assert!(router.register(&json!("7"), request(&json!("7")), sender, true).is_err(), "an id twice");
    // Another id, as the protocol has it: numbers and texts differ.
    assert_eq!(route(&mut router, json!({"jsonrpc": "2.0", "id": 7, "result": {}})), "none");
    assert_eq!(route(&mut router, json!({"jsonrpc": "2.0", "id": "7", "result": {}})), "client");
    assert_eq!(read(&mut messages).unwrap()["id"], "7");
}

#[test]
fn a_request_of_the_server_goes_to_a_pending_request() {
    let mut router = MessageRouter::new(Clients::One);
    let elicitation = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}});
    assert_eq!(route(&mut router, elicitation.clone()), "none", "it is buffered");
    let (sender, mut listener) = mpsc::channel(8);
    let buffered: Vec<_> = router.listen(sender).into_iter().map(Value::Object).collect();
    assert_eq!((buffered.len(), &buffered[0]), (1, &elicitation));
    assert_eq!(route(&mut router, elicitation.clone()), "client");
    assert_eq!(read(&mut listener), Some(elicitation.clone()));
    let (_, mut messages) = register(&mut router, &json!(1));
    assert_eq!(route(&mut router, elicitation.clone()), "client");
    assert_eq!(read(&mut messages), Some(elicitation.clone()));
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(route(&mut router, notification.clone()), "client");
    assert_eq!((read(&mut listener), read(&mut messages)), (Some(notification.clone()), None));
    drop(listener);
    assert_eq!(route(&mut router, notification.clone()), "client");
    assert_eq!(read(&mut messages), Some(notification));
    assert_eq!(route(&mut MessageRouter::new(Clients::All), elicitation), "child");
}

#[test]
fn only_the_answer_goes_to_a_request_without_a_stream() {
    let mut router = MessageRouter::new(Clients::One);
    let (sender, mut messages) = mpsc::channel(8);
    router.register(&json!(0), request(&json!(0)), sender, false).unwrap();
    assert_eq!(route(&mut router, json!({"jsonrpc": "2.0", "method": "notifications/message"})), "none");
    assert_eq!(route(&mut router, json!({"jsonrpc": "2.0", "id": 0, "result": {}})), "client");
    assert_eq!(read(&mut messages).unwrap()["result"], json!({}));
    let (sender, _listener) = mpsc::channel(8);
    assert_eq!(router.listen(sender).len(), 1, "the other is buffered");
}

#[test]
fn a_closed_stream_cancels_only_in_the_stateless_era() {
    for (clients, expected) in [(Clients::All, Some("notifications/cancelled")), (Clients::One, None)] {
        let mut router = MessageRouter::new(clients);
        let (sent, _inlet) = register(&mut router, &json!("a"));
        let cancel = router.remove(&sent["id"].to_string());
        assert_eq!(cancel.as_ref().and_then(|cancel| cancel["method"].as_str()), expected);
        if let Some(cancel) = cancel {
            assert_eq!(cancel["params"]["requestId"], sent["id"]);
        }
        assert!(!router.is_busy());
        assert_eq!(router.remove(&sent["id"].to_string()), None);
    }
}

#[test]
fn the_end_of_a_child_ends_every_request() {
    let mut router = MessageRouter::new(Clients::One);
    let (_, _inlet) = register(&mut router, &json!("a"));
    let sent = router.close("the tool server x ended (exit status: 3)");
    assert_eq!(sent.len(), 1);
    let error = Value::Object(sent[0].1.clone());
    assert_eq!(error["id"], "a");
    assert_eq!(error["error"]["message"], "the tool server x ended (exit status: 3)");
    let (sender, _unread) = mpsc::channel(1);
    assert!(router.register(&json!("b"), request(&json!("b")), sender, true).is_err());
}

#[test]
fn pending_and_buffered_messages_are_bounded() {
    let mut router = MessageRouter::new(Clients::One);
    for number in 0..MAX_BUFFERED + 5 {
        route(&mut router, json!({"jsonrpc": "2.0", "method": "n", "params": {"number": number}}));
    }
    let (sender, _listener) = mpsc::channel(8);
    let buffered = router.listen(sender);
    assert_eq!((buffered.len(), &buffered[0]["params"]["number"]), (MAX_BUFFERED, &json!(5)));
    let inlets: Vec<_> = (0..MAX_PENDING).map(|id| register(&mut router, &json!(id)).1).collect();
    let (sender, _unread) = mpsc::channel(1);
    assert!(router.register(&json!("more"), request(&json!("more")), sender, true).is_err());
    drop(inlets);
}
