//! `params.taskId`, which upstream's web UI sends in 0.3 when it recovers from a crash.

use serde_json::{Value, json};

use crate::agent::{Running, start};
use crate::push_receiver::{call, call_as, options, pushing};

async fn refusal(server: &Running, method: &str, params: Value) -> (i64, String) {
    let answer = call_as(server, None, method, params).await;
    let code = answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {answer}"));
    (code, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
}

fn message(text: &str) -> Value {
    json!({"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": text}]})
}

async fn hold(server: &Running) {
    let params = json!({"message": message("hold"), "configuration": {"blocking": false}});
    call(server, "message/send", params).await;
}

/// The state in the first event of a stream.
async fn streamed(server: &Running, method: &str, params: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = reqwest::Client::new().post(&server.url).header("content-type", "application/json");
    let mut response = request.body(body.to_string()).send().await.unwrap();
    let first = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    let data = first.lines().find_map(|line| line.strip_prefix("data: "));
    let event: Value = serde_json::from_str(data.unwrap_or_else(|| panic!("{method}: {first}"))).unwrap();
    event["result"].clone()
}

#[tokio::test]
async fn it_names_the_task_of_a_request() {
    let server = start().await;
    hold(&server).await;
    for params in
        [json!({"taskId": "t1"}), json!({"id": "t1", "taskId": "t1"}), json!({"id": "", "taskId": "t1"})]
    {
        assert_eq!(call(&server, "tasks/get", params.clone()).await["id"], "t1", "{params}");
        assert_eq!(streamed(&server, "tasks/resubscribe", params.clone()).await["id"], "t1", "{params}");
    }
    assert_eq!(call(&server, "tasks/get", json!({"id": "t1", "taskId": null})).await["id"], "t1");
    let trimmed = call(&server, "tasks/get", json!({"taskId": "t1", "historyLength": 0})).await;
    assert!(trimmed.get("history").is_none(), "{trimmed}");
    let canceled = call(&server, "tasks/cancel", json!({"taskId": "t1"})).await;
    assert_eq!(canceled["status"]["state"], "canceled", "{canceled}");
}

#[tokio::test]
async fn it_names_the_task_of_a_message() {
    let server = start().await;
    for (number, method) in ["message/send", "message/stream"].into_iter().enumerate() {
        call(&server, "message/send", json!({"message": message("ask")})).await;
        let id = format!("t{}", number + 1);
        let mut named = message("this one");
        named["taskId"] = json!(id);
        let task = if method == "message/send" {
            call(&server, method, json!({"message": message("this one"), "taskId": id})).await
        } else {
            streamed(&server, method, json!({"message": named, "taskId": id})).await
        };
        assert_eq!(task["id"], *id, "{method}: {task}");
    }
}

#[tokio::test]
async fn two_different_tasks_are_refused() {
    let server = start().await;
    hold(&server).await;
    for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
        let (code, text) = refusal(&server, method, json!({"id": "t1", "taskId": "t2"})).await;
        assert!(code == -32602 && text.contains("taskId: must be equal to id"), "{method}: {code} {text}");
        let (code, text) = refusal(&server, method, json!({"taskId": "nope"})).await;
        assert!(code == -32001 && text.contains("nope"), "{method}: {code} {text}");
        for params in [json!({}), json!({"taskId": ""}), json!({"taskId": null})] {
            let (code, text) = refusal(&server, method, params).await;
            assert!(code == -32602 && text.contains("id: is required"), "{method}: {code} {text}");
        }
    }
    for method in ["message/send", "message/stream"] {
        let mut named = message("hi");
        named["taskId"] = json!("t1");
        let (code, text) = refusal(&server, method, json!({"message": named, "taskId": "t2"})).await;
        assert!(
            code == -32602 && text.contains("taskId: must be equal to message.taskId"),
            "{method}: {code} {text}"
        );
    }
}

#[tokio::test]
async fn other_methods_do_not_read_it() {
    let server = pushing(options()).await;
    hold(&server).await;
    let (code, text) = refusal(&server, "GetTask", json!({"taskId": "t1"})).await;
    assert!(code == -32602 && text.contains("id: is required"), "{code} {text}");
    let (code, text) = refusal(&server, "tasks/pushNotificationConfig/list", json!({"taskId": "t1"})).await;
    assert!(code == -32602 && text.contains("id: is required"), "{code} {text}");
    let message = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "count 1"}]});
    let task = call(&server, "SendMessage", json!({"message": message, "taskId": "t1"})).await["task"].take();
    assert_eq!(task["id"], "t2", "{task}");
}
