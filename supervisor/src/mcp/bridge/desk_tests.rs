use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::super::message::Message;
use super::{Clients, Desk, MOST_KEPT, MOST_WAITING, Way};

type Inlet = mpsc::Receiver<Message>;

fn message(value: &Value) -> Message {
    value.as_object().unwrap().clone()
}

fn request(id: &Value) -> Message {
    let params = json!({"name": "x", "_meta": {"progressToken": "mine"}});
    message(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// Asks, with a stream that takes everything: what the child is told, and what the client reads.
fn ask(desk: &mut Desk, id: &Value) -> (Message, Inlet) {
    let (outlet, inlet) = mpsc::channel(8);
    let (_, told) = desk.admit(id, request(id), outlet, true).unwrap();
    (told, inlet)
}

/// What the child says, on its way: `out`, `back` or `nowhere`.
fn say(desk: &mut Desk, value: Value) -> &'static str {
    let Value::Object(message) = value else { panic!("no message") };
    match desk.sort(message) {
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
    let mut desk = Desk::new(Clients::All);
    let ((first, mut one), (second, mut two)) = (ask(&mut desk, &json!(7)), ask(&mut desk, &json!(7)));
    assert_ne!(first["id"], second["id"]);
    let token = &second["params"]["_meta"]["progressToken"];
    let progress = |token: &Value| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
    assert_eq!(say(&mut desk, progress(token)), "out");
    assert_eq!(read(&mut two).unwrap()["params"]["progressToken"], "mine");
    assert_eq!(say(&mut desk, progress(&json!("mine"))), "nowhere");
    for (id, inlet, text) in [(&second["id"], &mut two, "b"), (&first["id"], &mut one, "a")] {
        assert_eq!(say(&mut desk, json!({"jsonrpc": "2.0", "id": id, "result": text})), "out");
        assert_eq!(read(inlet).unwrap(), json!({"jsonrpc": "2.0", "id": 7, "result": text}));
        assert!(inlet.is_closed(), "the stream goes on after the answer");
    }
    assert!(!desk.is_busy());
}

#[test]
fn a_subscription_is_its_request() {
    let mut desk = Desk::new(Clients::All);
    let ((first, mut one), (second, _two)) = (ask(&mut desk, &json!("s")), ask(&mut desk, &json!("s")));
    assert_ne!(first["id"], second["id"]);
    let meta = json!({"io.modelcontextprotocol/subscriptionId": first["id"]});
    let news = |meta: &Value| json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}});
    assert_eq!(say(&mut desk, news(&meta)), "out");
    let read = read(&mut one).unwrap();
    assert_eq!(read["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], "s");
    assert_eq!(say(&mut desk, news(&json!({"io.modelcontextprotocol/subscriptionId": 99}))), "nowhere");
}

#[test]
fn a_lone_client_is_passed_on_as_it_is() {
    let mut desk = Desk::new(Clients::One);
    let (told, mut inlet) = ask(&mut desk, &json!("7"));
    assert_eq!(told, request(&json!("7")));
    let (outlet, _unread) = mpsc::channel(1);
    assert!(desk.admit(&json!("7"), request(&json!("7")), outlet, true).is_err(), "an id twice");
    // Another id, as the protocol has it: numbers and texts differ.
    assert_eq!(say(&mut desk, json!({"jsonrpc": "2.0", "id": 7, "result": {}})), "nowhere");
    assert_eq!(say(&mut desk, json!({"jsonrpc": "2.0", "id": "7", "result": {}})), "out");
    assert_eq!(read(&mut inlet).unwrap()["id"], "7");
}

#[test]
fn what_the_server_asks_goes_to_a_request_under_way() {
    let mut desk = Desk::new(Clients::One);
    let question = json!({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}});
    assert_eq!(say(&mut desk, question.clone()), "nowhere", "it is kept");
    let (outlet, mut listener) = mpsc::channel(8);
    let kept: Vec<_> = desk.listen(outlet).into_iter().map(Value::Object).collect();
    assert_eq!((kept.len(), &kept[0]), (1, &question));
    assert_eq!(say(&mut desk, question.clone()), "out");
    assert_eq!(read(&mut listener), Some(question.clone()));
    let (_, mut inlet) = ask(&mut desk, &json!(1));
    assert_eq!(say(&mut desk, question.clone()), "out");
    assert_eq!(read(&mut inlet), Some(question.clone()));
    let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    assert_eq!(say(&mut desk, news.clone()), "out");
    assert_eq!((read(&mut listener), read(&mut inlet)), (Some(news.clone()), None));
    drop(listener);
    assert_eq!(say(&mut desk, news.clone()), "out");
    assert_eq!(read(&mut inlet), Some(news));
    // Where all share the child, nobody in particular could be asked.
    assert_eq!(say(&mut Desk::new(Clients::All), question), "back");
}

#[test]
fn nothing_but_its_answer_goes_to_the_first_request() {
    let mut desk = Desk::new(Clients::One);
    let (outlet, mut inlet) = mpsc::channel(8);
    desk.admit(&json!(0), request(&json!(0)), outlet, false).unwrap();
    assert_eq!(say(&mut desk, json!({"jsonrpc": "2.0", "method": "notifications/message"})), "nowhere");
    assert_eq!(say(&mut desk, json!({"jsonrpc": "2.0", "id": 0, "result": {}})), "out");
    assert_eq!(read(&mut inlet).unwrap()["result"], json!({}));
    let (outlet, _listener) = mpsc::channel(8);
    assert_eq!(desk.listen(outlet).len(), 1, "the other is kept for later");
}

#[test]
fn a_closed_stream_cancels_where_that_is_its_meaning() {
    for (clients, expected) in [(Clients::All, Some("notifications/cancelled")), (Clients::One, None)] {
        let mut desk = Desk::new(clients);
        let (told, _inlet) = ask(&mut desk, &json!("a"));
        let cancel = desk.forget(&told["id"].to_string());
        assert_eq!(cancel.as_ref().and_then(|cancel| cancel["method"].as_str()), expected);
        if let Some(cancel) = cancel {
            assert_eq!(cancel["params"]["requestId"], told["id"]);
        }
        assert!(!desk.is_busy());
        assert_eq!(desk.forget(&told["id"].to_string()), None);
    }
}

#[test]
fn the_end_of_a_child_is_told_to_all_who_wait() {
    let mut desk = Desk::new(Clients::One);
    let (_, _inlet) = ask(&mut desk, &json!("a"));
    let told = desk.close("the tool server x ended (exit status: 3)");
    assert_eq!(told.len(), 1);
    let error = Value::Object(told[0].1.clone());
    assert_eq!(error["id"], "a");
    assert_eq!(error["error"]["message"], "the tool server x ended (exit status: 3)");
    let (outlet, _unread) = mpsc::channel(1);
    assert!(desk.admit(&json!("b"), request(&json!("b")), outlet, true).is_err());
}

#[test]
fn nothing_grows_without_bounds() {
    let mut desk = Desk::new(Clients::One);
    for number in 0..MOST_KEPT + 5 {
        say(&mut desk, json!({"jsonrpc": "2.0", "method": "n", "params": {"number": number}}));
    }
    let (outlet, _listener) = mpsc::channel(8);
    let kept = desk.listen(outlet);
    assert_eq!((kept.len(), &kept[0]["params"]["number"]), (MOST_KEPT, &json!(5)));
    let inlets: Vec<_> = (0..MOST_WAITING).map(|id| ask(&mut desk, &json!(id)).1).collect();
    let (outlet, _unread) = mpsc::channel(1);
    assert!(desk.admit(&json!("more"), request(&json!("more")), outlet, true).is_err());
    drop(inlets);
}
