use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::message::Message;
use super::{Clients, MOST_BUFFERED, MOST_WAITING, MessageRouter, Way};

type Inlet = mpsc::Receiver<Message>;

fn message(value: &Value) -> Message {
    value.as_object().unwrap().clone()
}

fn request(id: &Value) -> Message {
    let params = json!({"name": "x", "_meta": {"progressToken": "mine"}});
    message(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// Asks, with a stream that takes everything: the message for the child, and what the client reads.
fn ask(router: &mut MessageRouter, id: &Value) -> (Message, Inlet) {
    let (outlet, inlet) = mpsc::channel(8);
    let (_, sent) = router.admit(id, request(id), outlet, true).unwrap();
    (sent, inlet)
}

/// What the child says, on its way: `out`, `back` or `nowhere`.
fn say(router: &mut MessageRouter, value: Value) -> &'static str {
    let Value::Object(message) = value else { panic!("no message") };
    match router.sort(message) {
        Way::Out(outlet, message) => {
            outlet.try_send(message).unwrap();
            "out"
        }
        Way::Back(_) => "back",
        Way::Nowhere => "nowhere",
    }
}

fn read(inlet: &mut Inlet) -> Option<Value> {
    inlet.try_recv().ok().map(Value::Object)
}

#[test]
fn two_clients_may_choose_the_same_names() {
    let mut router = MessageRouter::new(Clients::All);
    let ((first, mut one), (second, mut two)) = (ask(&mut router, &json!(7)), ask(&mut router, &json!(7)));
    assert_ne!(first["id"], second["id"]);
    let token = &second["params"]["_meta"]["progressToken"];
    let progress = |token: &Value| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
    assert_eq!(say(&mut router, progress(token)), "out");
    assert_eq!(read(&mut two).unwrap()["params"]["progressToken"], "mine");
    assert_eq!(say(&mut router, progress(&json!("mine"))), "nowhere");
    for (id, inlet, text) in [(&second["id"], &mut two, "b"), (&first["id"], &mut one, "a")] {
        assert_eq!(say(&mut router, json!({"jsonrpc": "2.0", "id": id, "result": text})), "out");
        assert_eq!(read(inlet).unwrap(), json!({"jsonrpc": "2.0", "id": 7, "result": text}));
        assert!(inlet.is_closed(), "the stream goes on after the answer");
    }
    assert!(!router.is_busy());
}

#[test]
fn a_subscription_is_its_request() {
    let mut router = MessageRouter::new(Clients::All);
    let ((first, mut one), (second, _two)) = (ask(&mut router, &json!("s")), ask(&mut router, &json!("s")));
    assert_ne!(first["id"], second["id"]);
    let meta = json!({"io.modelcontextprotocol/subscriptionId": first["id"]});
    let notification = |meta: &Value| json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}});
    assert_eq!(say(&mut router, notification(&meta)), "out");
    let read = read(&mut one).unwrap();
    assert_eq!(read["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    assert_eq!(
        say(&mut router, notification(&json!({"io.modelcontextprotocol/subscriptionId": 99}))),
        "nowhere"
    );
}

#[test]
fn a_lone_client_is_passed_on_as_it_is() {
    let mut router = MessageRouter::new(Clients::One);
    let (sent, mut inlet) = ask(&mut router, &json!("7"));
    assert_eq!(sent, request(&json!("7")));
    let (outlet, _unread) = mpsc::channel(1);
    assert!(router.admit(&json!("7"), request(&json!("7")), outlet, true).is_err(), "an id twice");
    // Another id, as the protocol has it: numbers and texts differ.
    assert_eq!(say(&mut router, json!({"jsonrpc": "2.0", "id": 7, "result": {}})), "nowhere");
    assert_eq!(say(&mut router, json!({"jsonrpc": "2.0", "id": "7", "result": {}})), "out");
    assert_eq!(read(&mut inlet).unwrap()["id"], "7");
}

#[test]
fn what_the_server_asks_goes_to_a_request_under_way() {
    let mut router = MessageRouter::new(Clients::One);
    let question = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}});
    assert_eq!(say(&mut router, question.clone()), "nowhere", "it is buffered");
    let (outlet, mut listener) = mpsc::channel(8);
    let buffered: Vec<_> = router.listen(outlet).into_iter().map(Value::Object).collect();
    assert_eq!((buffered.len(), &buffered[0]), (1, &question));
    assert_eq!(say(&mut router, question.clone()), "out");
    assert_eq!(read(&mut listener), Some(question.clone()));
    let (_, mut inlet) = ask(&mut router, &json!(1));
    assert_eq!(say(&mut router, question.clone()), "out");
    assert_eq!(read(&mut inlet), Some(question.clone()));
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(say(&mut router, notification.clone()), "out");
    assert_eq!((read(&mut listener), read(&mut inlet)), (Some(notification.clone()), None));
    drop(listener);
    assert_eq!(say(&mut router, notification.clone()), "out");
    assert_eq!(read(&mut inlet), Some(notification));
    // Where all share the child, nobody in particular could be asked.
    assert_eq!(say(&mut MessageRouter::new(Clients::All), question), "back");
}

#[test]
fn nothing_but_its_answer_goes_to_the_first_request() {
    let mut router = MessageRouter::new(Clients::One);
    let (outlet, mut inlet) = mpsc::channel(8);
    router.admit(&json!(0), request(&json!(0)), outlet, false).unwrap();
    assert_eq!(say(&mut router, json!({"jsonrpc": "2.0", "method": "notifications/message"})), "nowhere");
    assert_eq!(say(&mut router, json!({"jsonrpc": "2.0", "id": 0, "result": {}})), "out");
    assert_eq!(read(&mut inlet).unwrap()["result"], json!({}));
    let (outlet, _listener) = mpsc::channel(8);
    assert_eq!(router.listen(outlet).len(), 1, "the other is buffered");
}

#[test]
fn a_closed_stream_cancels_where_that_is_its_meaning() {
    for (clients, expected) in [(Clients::All, Some("notifications/cancelled")), (Clients::One, None)] {
        let mut router = MessageRouter::new(clients);
        let (sent, _inlet) = ask(&mut router, &json!("a"));
        let cancel = router.forget(&sent["id"].to_string());
        assert_eq!(cancel.as_ref().and_then(|cancel| cancel["method"].as_str()), expected);
        if let Some(cancel) = cancel {
            assert_eq!(cancel["params"]["requestId"], sent["id"]);
        }
        assert!(!router.is_busy());
        assert_eq!(router.forget(&sent["id"].to_string()), None);
    }
}

#[test]
fn the_end_of_a_child_ends_every_request() {
    let mut router = MessageRouter::new(Clients::One);
    let (_, _inlet) = ask(&mut router, &json!("a"));
    let sent = router.close("the tool server x ended (exit status: 3)");
    assert_eq!(sent.len(), 1);
    let error = Value::Object(sent[0].1.clone());
    assert_eq!(error["id"], "a");
    assert_eq!(error["error"]["message"], "the tool server x ended (exit status: 3)");
    let (outlet, _unread) = mpsc::channel(1);
    assert!(router.admit(&json!("b"), request(&json!("b")), outlet, true).is_err());
}

#[test]
fn nothing_grows_without_bounds() {
    let mut router = MessageRouter::new(Clients::One);
    for number in 0..MOST_BUFFERED + 5 {
        say(&mut router, json!({"jsonrpc": "2.0", "method": "n", "params": {"number": number}}));
    }
    let (outlet, _listener) = mpsc::channel(8);
    let buffered = router.listen(outlet);
    assert_eq!((buffered.len(), &buffered[0]["params"]["number"]), (MOST_BUFFERED, &json!(5)));
    let inlets: Vec<_> = (0..MOST_WAITING).map(|id| ask(&mut router, &json!(id)).1).collect();
    let (outlet, _unread) = mpsc::channel(1);
    assert!(router.admit(&json!("more"), request(&json!("more")), outlet, true).is_err());
    drop(inlets);
}
