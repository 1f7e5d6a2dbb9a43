//! 1.0 is `ProtoJSON`: a reader accepts the lowerCamelCase name and the original name of each field, `null` as the
//! default value, and integers as text.

use caipe_a2a::card;
use caipe_a2a::client::{A2aClient, ClientOptions};
use caipe_a2a::model::{self, SendMessageRequest};
use caipe_a2a::server::ServerOptions;
use futures::StreamExt;
use proptest::option;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::{start, start_with};
use crate::card_properties::any_card;
use crate::peer::{Answer, End, Peer};
use crate::properties::{event, send_params};
use crate::push_receiver::{call, call_as, options, pushing};
use crate::rest::ask;

const HOOK: &str = "https://hooks.example.invalid/a";

/// The same message with the original names of its fields. The names in free-form objects and the keys of maps are data.
fn with_proto_names(value: Value) -> Value {
    let keep_name = |(name, value)| (name, with_proto_names(value));
    let rename = |(name, value): (String, Value)| {
        let value = match (name.as_str(), value) {
            ("metadata" | "params" | "data" | "header" | "scopes", value) => value,
            ("securitySchemes" | "schemes", Value::Object(map)) => map.into_iter().map(keep_name).collect(),
            (_, value) => with_proto_names(value),
        };
        (snake_case(&name), value)
    };
    match value {
        Value::Object(members) => members.into_iter().map(rename).collect(),
        Value::Array(items) => items.into_iter().map(with_proto_names).collect(),
        value => value,
    }
}

fn snake_case(name: &str) -> String {
    let write = |c: char| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() };
    name.chars().map(write).collect()
}

fn reads_the_same<T>(value: &T) -> Result<(), TestCaseError>
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug,
{
    let written = with_proto_names(serde_json::to_value(value).unwrap());
    let read: T = serde_json::from_str(&written.to_string())
        .map_err(|error| TestCaseError::fail(format!("{error}: {written}")))?;
    prop_assert_eq!(&read, value, "{}", written);
    Ok(())
}

fn word() -> impl Strategy<Value = String> {
    "[a-z0-9]{0,4}"
}

fn get_request() -> impl Strategy<Value = model::GetTaskRequest> {
    (option::of(word()), word(), option::of(any::<u32>()))
        .prop_map(|(tenant, id, history_length)| model::GetTaskRequest { tenant, id, history_length })
}

fn list_request() -> impl Strategy<Value = model::ListTasksRequest> {
    let time = option::of(0_i64..4_000_000_000_000);
    let state = option::of(prop::sample::select(vec![
        model::TaskState::Working,
        model::TaskState::Canceled,
        model::TaskState::InputRequired,
    ]));
    let texts = (option::of(word()), option::of(word()), option::of(word()));
    (texts, state, option::of(any::<u32>()), option::of(any::<u32>()), time, any::<bool>()).prop_map(
        |((tenant, context_id, page_token), status, page_size, history_length, millis, include_artifacts)| {
            let time = millis.map(|millis| jiff::Timestamp::from_millisecond(millis).unwrap());
            model::ListTasksRequest {
                tenant,
                context_id,
                status,
                page_size,
                page_token,
                history_length,
                status_timestamp_after: time,
                include_artifacts,
            }
        },
    )
}

fn push_config() -> impl Strategy<Value = model::TaskPushNotificationConfig> {
    let scheme = (word(), option::of(word()))
        .prop_map(|(scheme, credentials)| model::AuthenticationInfo { scheme, credentials });
    let texts = (option::of(word()), option::of(word()), option::of(word()), word(), option::of(word()));
    (texts, option::of(scheme)).prop_map(|((tenant, id, task_id, url, token), authentication)| {
        model::TaskPushNotificationConfig { tenant, id, task_id, url, token, authentication }
    })
}

proptest! {
    #[test]
    fn a_message_request_reads_the_same_under_either_names(params in send_params()) {
        reads_the_same(&SendMessageRequest::from(params))?;
    }

    #[test]
    fn requests_for_tasks_read_the_same_under_either_names(
        get in get_request(), list in list_request(), metadata in option::of(crate::properties::object()),
    ) {
        let (tenant, id) = (get.tenant.clone(), get.id.clone());
        reads_the_same(&model::CancelTaskRequest { tenant: tenant.clone(), id: id.clone(), metadata })?;
        reads_the_same(&model::SubscribeToTaskRequest { tenant, id })?;
        reads_the_same(&get)?;
        reads_the_same(&list)?;
    }

    #[test]
    fn requests_for_push_configurations_read_the_same_under_either_names(
        config in push_config(), list in list_request(), task_id in word(), id in word(),
    ) {
        let model::ListTasksRequest { tenant, page_size, page_token, .. } = list;
        reads_the_same(&config)?;
        reads_the_same(&model::ListTaskPushNotificationConfigsRequest {
            tenant: tenant.clone(), task_id: task_id.clone(), page_size, page_token,
        })?;
        reads_the_same(&model::GetTaskPushNotificationConfigRequest {
            tenant: tenant.clone(), task_id: task_id.clone(), id: id.clone(),
        })?;
        reads_the_same(&model::DeleteTaskPushNotificationConfigRequest { tenant, task_id, id })?;
    }

    #[test]
    fn an_event_reads_the_same_under_either_names(event in event()) {
        let event = model::Event::from(event);
        if let model::Event::Task(task) = &event {
            reads_the_same(&model::ListTasksResponse {
                tasks: vec![(**task).clone()],
                next_page_token: "n".to_owned(),
                page_size: 1,
                total_size: 2,
            })?;
        }
        reads_the_same(&event)?;
    }

    #[test]
    fn a_card_reads_the_same_under_either_names(card in any_card()) {
        let written = with_proto_names(serde_json::to_value(&card).unwrap()).to_string();
        let read = card::parse(written.as_bytes()).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(read, card);
    }

    #[test]
    fn a_page_of_push_configurations_reads_the_same_under_either_names(config in push_config()) {
        let next_page_token = "n".to_owned();
        reads_the_same(&model::ListTaskPushNotificationConfigsResponse { configs: vec![config], next_page_token })?;
    }
}

/// A message with each field that has two names.
fn message(text: &str) -> Value {
    json!({"role": "ROLE_USER", "message_id": "m", "context_id": "c", "reference_task_ids": ["other"],
        "parts": [{"text": text, "media_type": "text/plain", "some_day": 1}], "some_day": {}})
}

#[tokio::test]
async fn the_server_reads_the_original_names_over_json_rpc() {
    let server = pushing(options()).await;
    let config = json!({"id": "one", "url": HOOK, "task_id": "ignored"});
    let configuration = json!({"return_immediately": true, "history_length": 1, "accepted_output_modes": ["text"],
        "task_push_notification_config": config});
    let params = json!({"message": message("ask"), "configuration": configuration});
    let task = call(&server, "SendMessage", params).await["task"].take();
    let stored = json!([{"role": "ROLE_USER", "messageId": "m", "contextId": "c", "taskId": "t1",
        "referenceTaskIds": ["other"], "parts": [{"text": "ask", "mediaType": "text/plain"}]}]);
    assert_eq!((&task["contextId"], &task["history"]), (&json!("c"), &stored));

    let by_task = json!({"task_id": "t1", "page_size": 1});
    let page = call(&server, "ListTaskPushNotificationConfigs", by_task).await;
    assert_eq!(page["configs"], json!([{"id": "one", "taskId": "t1", "url": HOOK}]));
    for method in ["GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"] {
        call(&server, method, json!({"task_id": "t1", "id": "one"})).await;
    }
    let created = json!({"task_id": "t1", "id": "two", "url": HOOK});
    assert_eq!(call(&server, "CreateTaskPushNotificationConfig", created).await["taskId"], "t1");

    let read = call(&server, "GetTask", json!({"id": "t1", "history_length": 0})).await;
    assert!(read.get("history").is_none(), "{read}");
    let filters = json!({"page_size": 7, "status": "TASK_STATE_INPUT_REQUIRED", "context_id": "c", "page_token": "",
        "history_length": 0, "include_artifacts": true, "status_timestamp_after": "2026-01-01T00:00:00Z"});
    let listed = call(&server, "ListTasks", filters).await;
    assert_eq!((&listed["tasks"][0]["id"], &listed["pageSize"]), (&json!("t1"), &json!(7)), "{listed}");

    let mut answer = message("this one");
    answer["task_id"] = json!("t1");
    let params = json!({"message": answer, "configuration": {"history_length": 0}});
    let task = call(&server, "SendMessage", params).await["task"].take();
    assert_eq!((&task["id"], &task["status"]["state"]), (&json!("t1"), &json!("TASK_STATE_COMPLETED")));
    assert!(task.get("history").is_none(), "{task}");
}

#[tokio::test]
async fn the_server_reads_the_original_names_over_rest() {
    let server = pushing(options()).await;
    let body = json!({"message": message("hold"), "configuration": {"return_immediately": true}});
    let sent = ask(&server, "POST", "/message:send", Some(&body.to_string())).await;
    assert_eq!(sent.json["task"]["history"][0]["messageId"], "m", "{}", sent.json);
    let read = ask(&server, "GET", "/tasks/t1?history_length=0", None).await;
    assert!(read.json["id"] == "t1" && read.json.get("history").is_none(), "{}", read.json);
    let query = "page_size=7&context_id=c&page_token=&include_artifacts=True&history_length=1";
    let path = format!("/tasks?{query}&status_timestamp_after=2026-01-01T00:00:00Z");
    assert_eq!(ask(&server, "GET", &path, None).await.json["pageSize"], 7);
    for id in ["one", "two"] {
        let config = json!({"task_id": "ignored", "id": id, "url": HOOK}).to_string();
        let created = ask(&server, "POST", "/tasks/t1/pushNotificationConfigs", Some(&config)).await;
        assert_eq!(created.json["taskId"], "t1", "{}", created.json);
    }
    let page = ask(&server, "GET", "/tasks/t1/pushNotificationConfigs?page_size=1&task_id=other", None).await;
    assert_eq!(page.json["configs"].as_array().map(Vec::len), Some(1), "{}", page.json);
    assert_eq!(page.json["configs"][0]["taskId"], "t1");
    for (path, says) in [
        ("/tasks?page_size=101", "pageSize: must be between"),
        ("/tasks?include_artifacts=maybe", "include_artifacts: "),
        ("/tasks?status_timestamp_after=noon", "status_timestamp_after: not a time"),
        ("/tasks/t1?history_length=-1", "history_length: must not be negative"),
        ("/tasks/t1?history_length=1&historyLength=1", "duplicate field `historyLength`"),
    ] {
        let refused = ask(&server, "GET", path, None).await;
        let message = refused.json["error"]["message"].as_str().unwrap_or_default();
        assert!(refused.status == 400 && message.contains(says), "{path}: {}", refused.json);
    }
}

#[tokio::test]
async fn the_two_names_of_one_field_are_a_duplicate() {
    let server = start().await;
    let mut both = message("hi");
    both["messageId"] = json!("m");
    for (method, params, field) in [
        ("GetTask", json!({"id": "t", "historyLength": 1, "history_length": 1}), "historyLength"),
        ("ListTasks", json!({"pageSize": 1, "page_size": 1}), "pageSize"),
        ("SendMessage", json!({"message": both}), "messageId"),
    ] {
        let answer = call_as(&server, None, method, params).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(&format!("duplicate field `{field}`")), "{message}");
    }
}

#[tokio::test]
async fn null_is_the_default_value_of_a_field() {
    let server = start().await;
    let message = json!({"role": "ROLE_USER", "messageId": "m", "contextId": null, "taskId": null, "metadata": null,
        "extensions": null, "referenceTaskIds": null,
        "parts": [{"text": "count 1", "raw": null, "filename": null, "mediaType": null, "metadata": null}]});
    let configuration = json!({"acceptedOutputModes": null, "historyLength": null, "returnImmediately": null,
        "taskPushNotificationConfig": null});
    let params =
        json!({"tenant": null, "message": message, "configuration": configuration, "metadata": null});
    let task = call(&server, "SendMessage", params).await["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let filters = json!({"tenant": null, "contextId": null, "status": null, "pageSize": null, "pageToken": null,
        "historyLength": null, "statusTimestampAfter": null, "includeArtifacts": null});
    assert_eq!(call(&server, "ListTasks", filters).await["pageSize"], 50);
    call(&server, "GetTask", json!({"tenant": null, "id": "t1", "historyLength": null})).await;
    for (method, params, says) in [
        ("GetTask", json!({"id": null}), "id: is required"),
        ("CancelTask", json!({"id": null, "metadata": null}), "id: is required"),
        ("SubscribeToTask", json!({"id": null}), "id: is required"),
        (
            "SendMessage",
            json!({"message": {"role": "ROLE_USER", "messageId": null, "parts": [{"text": "hi"}]}}),
            "message.messageId: is required",
        ),
    ] {
        let answer = call_as(&server, None, method, params).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(answer["error"]["code"] == -32602 && message.contains(says), "{method}: {answer}");
    }
}

#[tokio::test]
async fn an_integer_is_read_as_a_number_or_as_text_and_a_large_one_is_clamped() {
    let server = start().await;
    call(&server, "SendMessage", json!({"message": message("count 1")})).await;
    let get = |length: &str| {
        let params = format!(r#"{{"id": "t1", "historyLength": {length}}}"#);
        call_as(&server, None, "GetTask", serde_json::from_str(&params).unwrap())
    };
    for length in ["0", r#""0""#, "0.0", r#""0e0""#, "-0"] {
        let answer = get(length).await;
        assert!(
            answer["result"]["id"] == "t1" && answer["result"].get("history").is_none(),
            "{length}: {answer}"
        );
    }
    for length in
        ["1", r#""3""#, "1e2", "5000000000", "1e30", "18446744073709551616", r#""99999999999999999999""#]
    {
        let answer = get(length).await;
        assert_eq!(answer["result"]["history"].as_array().map(Vec::len), Some(1), "{length}: {answer}");
    }
    for (length, says) in [
        ("-1", "historyLength: must not be negative"),
        (r#""-1""#, "historyLength: must not be negative"),
        ("-1e30", "historyLength: must not be negative"),
        ("1.5", "historyLength: must be a whole number"),
        (r#""many""#, "historyLength: must be a whole number"),
        (r#""inf""#, "historyLength: must be a whole number"),
        (r#""""#, "historyLength: must be a whole number"),
        ("true", "historyLength: must be a whole number"),
        ("[1]", "historyLength: must be a whole number"),
    ] {
        let answer = get(length).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(answer["error"]["code"] == -32602 && message.contains(says), "{length}: {answer}");
    }
    let params = json!({"message": message("hi"), "configuration": {"historyLength": -1}});
    let answer = call_as(&server, None, "SendMessage", params).await;
    let text = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("configuration.historyLength: must not be negative"), "{answer}");
    for size in [json!("101"), json!(5_000_000_000_u64)] {
        let answer = call_as(&server, None, "ListTasks", json!({"pageSize": size})).await;
        let text = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(text.contains("pageSize: must be between 1 and 100"), "{answer}");
    }
    let clamped = ask(&server, "GET", "/tasks/t1?historyLength=99999999999", None).await;
    assert_eq!(clamped.json["history"].as_array().map(Vec::len), Some(1), "{}", clamped.json);
}

#[tokio::test]
async fn lenient_messages_are_read_under_either_names() {
    let options = ServerOptions { lenient_messages: true, ..ServerOptions::default() };
    let server = start_with(options, |_| ()).await;
    let ask = json!({"message": {"role": "ROLE_USER", "parts": [{"text": "ask"}]}, "context_id": "c"});
    assert_eq!(call(&server, "SendMessage", ask).await["task"]["contextId"], "c");
    let answer = json!({"message": {"role": "ROLE_USER", "parts": [{"text": "this"}]}, "task_id": "t1"});
    assert_eq!(call(&server, "SendMessage", answer).await["task"]["id"], "t1");
}

#[tokio::test]
async fn version_0_3_reads_its_own_names_only() {
    let server = start().await;
    let message = json!({"role": "user", "message_id": "m", "parts": [{"text": "count 1"}]});
    let answer = call_as(&server, None, "message/send", json!({"message": message})).await;
    let text = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(text.contains("message.messageId: is required"), "{answer}");
    let message = json!({"role": "user", "messageId": "m", "parts": [{"text": "count 1"}]});
    let params = json!({"message": message, "configuration": {"history_length": 0}});
    let task = call(&server, "message/send", params).await;
    assert_eq!(task["history"].as_array().map(Vec::len), Some(1), "{task}");
    for length in [json!("3"), json!(5_000_000_000_u64), json!(-1)] {
        let answer = call_as(&server, None, "tasks/get", json!({"id": "t1", "historyLength": length})).await;
        assert_eq!(answer["error"]["code"], -32602, "{length}: {answer}");
    }
}

#[tokio::test]
async fn the_client_reads_cards_and_events_under_the_original_names() {
    let card = json!({"name": "Proto", "supported_interfaces": [
        {"url": "/", "protocol_binding": "JSONRPC", "protocol_version": "1.0"}],
        "capabilities": {"streaming": true, "push_notifications": true}, "default_input_modes": ["text"]});
    let results = [
        json!({"task": {"id": "T", "context_id": "C", "status": {"state": "TASK_STATE_WORKING"}}}),
        json!({"artifact_update": {"task_id": "T", "context_id": "C", "last_chunk": true,
            "artifact": {"artifact_id": "A", "parts": [{"text": "Grüße", "media_type": "text/plain"}]}}}),
        json!({"status_update": {"task_id": "T", "context_id": "C", "status": {"state": "TASK_STATE_COMPLETED",
            "message": {"message_id": "m", "role": "ROLE_AGENT", "parts": null}}}}),
    ];
    let frames =
        results.map(|result| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "result": result})));
    let peer = Peer::raw(move |request| {
        if request.is_card() { Answer::json(&card) } else { Answer::stream(frames.concat(), End::Close) }
    })
    .await;
    let client =
        A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
    assert!(client.card().capabilities.push_notifications);
    let request = SendMessageRequest::new(model::Message::user("m1", "x"));
    let events: Vec<_> =
        client.stream(request).await.unwrap().map(|event| event.unwrap().event).collect().await;
    let model::Event::ArtifactUpdate(update) = &events[1] else { panic!("{events:?}") };
    assert_eq!((update.artifact.text().as_str(), update.last_chunk), ("Grüße", true));
    assert_eq!(update.artifact.parts[0].media_type.as_deref(), Some("text/plain"));
    assert_eq!(events[2].state(), Some(model::TaskState::Completed));
    assert!(events.iter().all(|event| event.task_id() == Some("T")), "{events:?}");
}
