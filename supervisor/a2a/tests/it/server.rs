//! Calls that answer once, in both versions, as raw HTTP.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use caipe_a2a::server::{Agent, ServerOptions, normalize_paths, router};
use serde_json::{Value, json};

use crate::agent::{Running, Worker, card, eventually, start, start_with};

/// One wire version as a raw client speaks it.
struct Dialect {
    header: Option<&'static str>,
    send: &'static str,
    get: &'static str,
    cancel: &'static str,
    role: &'static str,
    completed: &'static str,
    input_required: &'static str,
    canceled: &'static str,
    at_once: (&'static str, bool),
}

const OLD: Dialect = Dialect {
    header: None,
    send: "message/send",
    get: "tasks/get",
    cancel: "tasks/cancel",
    role: "user",
    completed: "completed",
    input_required: "input-required",
    canceled: "canceled",
    at_once: ("blocking", false),
};

const NEW: Dialect = Dialect {
    header: Some("1.0"),
    send: "SendMessage",
    get: "GetTask",
    cancel: "CancelTask",
    role: "ROLE_USER",
    completed: "TASK_STATE_COMPLETED",
    input_required: "TASK_STATE_INPUT_REQUIRED",
    canceled: "TASK_STATE_CANCELED",
    at_once: ("returnImmediately", true),
};

impl Dialect {
    async fn call(&self, server: &Running, method: &str, params: Value) -> Value {
        let mut request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
        if let Some(version) = self.header {
            request = request.header("a2a-version", version);
        }
        let body = json!({"jsonrpc": "2.0", "id": "é\"1", "method": method, "params": params});
        let answer: Value = request.body(body.to_string()).send().await.unwrap().json().await.unwrap();
        assert_eq!(answer["id"], "é\"1");
        answer
    }

    fn message(&self, text: &str) -> Value {
        // 0.3's `kind` beside 1.0's member is ignored by 1.0.
        json!({"role": self.role, "messageId": "m1", "parts": [{"kind": "text", "text": text}]})
    }

    /// The task in an answer to a message.
    fn task<'a>(&self, answer: &'a Value) -> &'a Value {
        if self.header.is_some() { &answer["result"]["task"] } else { &answer["result"] }
    }
}

#[tokio::test]
async fn a_blocking_call_returns_the_finished_task() {
    let server = start().await;
    for dialect in [OLD, NEW] {
        let answer =
            dialect.call(&server, dialect.send, json!({"message": dialect.message("count 3")})).await;
        let task = dialect.task(&answer);
        assert_eq!(task["status"]["state"], dialect.completed, "{answer}");
        assert_eq!(task["artifacts"][0]["parts"][0]["text"], "0 1 2 ");
        assert_eq!(task["artifacts"][0]["parts"].as_array().unwrap().len(), 1, "chunks of text are joined");
        assert_eq!(task["history"][0]["messageId"], "m1");
        assert_eq!(task["history"][0]["taskId"], task["id"]);
        assert_eq!(task.get("kind").is_some(), dialect.header.is_none());
        let again = dialect.call(&server, dialect.get, json!({"id": task["id"]})).await;
        assert_eq!(&again["result"], task);
    }
}

#[tokio::test]
async fn history_is_cut_to_what_is_wanted() {
    let server = start().await;
    for dialect in [OLD, NEW] {
        let params = json!({"message": dialect.message("count 1"), "configuration": {"historyLength": 0}});
        let answer = dialect.call(&server, dialect.send, params).await;
        assert!(dialect.task(&answer).get("history").is_none(), "{answer}");
        let id = &dialect.task(&answer)["id"];
        let answer = dialect.call(&server, dialect.get, json!({"id": id, "historyLength": 5})).await;
        assert_eq!(answer["result"]["history"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn who_does_not_wait_gets_the_task_at_once_and_can_cancel_it() {
    let server = start().await;
    for dialect in [OLD, NEW] {
        let (name, value) = dialect.at_once;
        let params = json!({"message": dialect.message("hold"), "configuration": {name: value}});
        let answer = dialect.call(&server, dialect.send, params).await;
        let id = dialect.task(&answer)["id"].clone();
        assert!(id.is_string(), "{answer}");
        for _ in 0..2 {
            let answer = dialect.call(&server, dialect.cancel, json!({"id": id})).await;
            assert_eq!(answer["result"]["status"]["state"], dialect.canceled, "{answer}");
        }
    }
}

#[tokio::test]
async fn a_finished_task_cannot_be_canceled_or_continued() {
    let server = start().await;
    for dialect in [OLD, NEW] {
        let answer =
            dialect.call(&server, dialect.send, json!({"message": dialect.message("count 0")})).await;
        let id = dialect.task(&answer)["id"].clone();
        let answer = dialect.call(&server, dialect.cancel, json!({"id": id})).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("completed"), "{answer}");
        let mut message = dialect.message("more");
        message["taskId"] = id;
        let answer = dialect.call(&server, dialect.send, json!({"message": message})).await;
        assert_eq!(answer["error"]["code"], -32004, "{answer}");
    }
}

#[tokio::test]
async fn a_task_that_waits_returns_and_goes_on() {
    let server = start().await;
    for dialect in [OLD, NEW] {
        let answer = dialect.call(&server, dialect.send, json!({"message": dialect.message("ask")})).await;
        let task = dialect.task(&answer);
        assert_eq!(task["status"]["state"], dialect.input_required, "{answer}");
        let mut message = dialect.message("this one");
        message["taskId"] = task["id"].clone();
        let answer = dialect.call(&server, dialect.send, json!({"message": message})).await;
        let status = &dialect.task(&answer)["status"];
        assert_eq!(status["state"], dialect.completed, "{answer}");
        assert_eq!(status["message"]["parts"][0]["text"], "this one");
    }
}

#[tokio::test]
async fn tasks_are_listed_in_1_0() {
    let server = start().await;
    NEW.call(&server, NEW.send, json!({"message": NEW.message("count 1")})).await;
    NEW.call(&server, NEW.send, json!({"message": NEW.message("ask")})).await;
    let answer = NEW.call(&server, "ListTasks", json!({"status": "TASK_STATE_INPUT_REQUIRED"})).await;
    let result = &answer["result"];
    assert_eq!(result["tasks"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!((&result["totalSize"], &result["pageSize"]), (&json!(1), &json!(50)));
    assert_eq!(result["nextPageToken"], "");
}

#[tokio::test]
async fn a_client_that_leaves_stops_nothing() {
    let server = start().await;
    let call = OLD.call(&server, OLD.send, json!({"message": OLD.message("hold")}));
    tokio::select! {
        answer = call => panic!("a task that works does not return: {answer}"),
        () = eventually(|| server.worker.log("t1").is_some()) => {}
    }
    let answer = OLD.call(&server, OLD.get, json!({"id": "t1"})).await;
    assert_eq!(answer["result"]["status"]["state"], "working");
}

#[tokio::test]
async fn the_version_may_be_in_the_query_and_missing_if_lenient() {
    let server = start().await;
    let http = reqwest::Client::new();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "x"}}).to_string();
    let post = |url: String| {
        let request = http.post(url).header("content-type", "application/json").body(body.clone());
        async move { request.send().await.unwrap().json::<Value>().await.unwrap()["error"]["code"].clone() }
    };
    assert_eq!(post(format!("{}?A2A-Version=1.0", server.url)).await, -32001);
    assert_eq!(post(server.url.clone()).await, -32009);
    let lenient = ServerOptions { lenient_version: true, ..ServerOptions::default() };
    let server = start_with(lenient, |_| ()).await;
    assert_eq!(post(server.url.clone()).await, -32001);
}

#[tokio::test]
async fn the_id_is_repeated_as_it_was_written() {
    let server = start().await;
    for id in [r#""a\u0041\n""#, "1.50", "-7", "12345678901234567890123", "null", r#""""#] {
        let body = format!(r#"{{"id": {id}, "method": "tasks/get", "params": {{"id": "x"}}}}"#);
        let request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
        let answer = request.body(body).send().await.unwrap().text().await.unwrap();
        assert!(answer.contains(&format!(r#""id":{id},"#)), "{id}: {answer}");
    }
}

/// Admits requests for the card and for `/health`, as an authenticating layer would.
async fn open_paths(request: Request, next: Next) -> Response {
    match request.uri().path() {
        "/.well-known/agent-card.json" | "/health" => next.run(request).await,
        _ => StatusCode::UNAUTHORIZED.into_response(),
    }
}

#[tokio::test]
async fn layers_apply_to_every_route_and_see_a_normalized_path() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let agent: Arc<dyn Agent> = Worker::pushing(card(&url), None);
    let routes = router(agent, ServerOptions::default())
        .merge(Router::new().route("/health", get(|| async { "ok" })))
        .layer(middleware::from_fn(open_paths));
    tokio::spawn(async move { axum::serve(listener, normalize_paths(routes)).await.unwrap() });
    for (path, status) in [
        ("/health", 200),
        ("//health", 200),
        ("/.well-known/agent-card.json", 200),
        ("//.well-known/agent-card.json", 200),
        ("/.well-known/agent.json", 401),
        ("//tasks", 401),
        ("/", 401),
        ("//", 401),
        ("/nothing", 401),
    ] {
        let response = reqwest::get(format!("{url}{path}")).await.unwrap();
        assert_eq!(response.status(), status, "{path}");
    }
}
