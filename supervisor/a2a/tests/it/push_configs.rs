//! The operations on push configurations, in both versions.

use serde_json::{Value, json};

use crate::agent::start;
use crate::push_receiver::{call, call_as, options, pushing, send, send_v0_3};

const URL: &str = "https://hooks.example.invalid/a";

#[tokio::test]
async fn configurations_of_1_0_are_created_read_listed_and_deleted() {
    let server = pushing(options()).await;
    let task = send(&server, "hold", Value::Null).await;
    let create = json!({"taskId": task["id"], "id": "one", "url": URL, "token": "t",
        "authentication": {"scheme": "Bearer", "credentials": "c"}, "unknown": 1});
    let mut expected = create.clone();
    expected.as_object_mut().unwrap().remove("unknown");
    assert_eq!(call(&server, "CreateTaskPushNotificationConfig", create).await, expected);
    let bare = json!({"taskId": task["id"], "url": "https://hooks.example.invalid/b"});
    let second = call(&server, "CreateTaskPushNotificationConfig", bare.clone()).await;
    assert!(second["id"].as_str().is_some_and(|id| id.len() == 36), "{second}");
    assert_eq!(call(&server, "CreateTaskPushNotificationConfig", bare).await, second, "told twice is one");
    let read = json!({"taskId": task["id"], "id": "one"});
    assert_eq!(call(&server, "GetTaskPushNotificationConfig", read.clone()).await, expected);
    let list = json!({"taskId": task["id"]});
    let page = call(&server, "ListTaskPushNotificationConfigs", list.clone()).await;
    assert_eq!(page["configs"].as_array().unwrap().len(), 2);
    assert_eq!(page["nextPageToken"], "");
    let paged = json!({"taskId": task["id"], "pageSize": 1});
    let first = call(&server, "ListTaskPushNotificationConfigs", paged).await;
    let rest = json!({"taskId": task["id"], "pageToken": first["nextPageToken"]});
    let rest = call(&server, "ListTaskPushNotificationConfigs", rest).await;
    assert_eq!(json!([first["configs"][0], rest["configs"][0]]), page["configs"]);
    for _ in 0..2 {
        assert_eq!(call(&server, "DeleteTaskPushNotificationConfig", read.clone()).await, Value::Null);
    }
    let gone = call_as(&server, None, "GetTaskPushNotificationConfig", read).await;
    assert_eq!(gone["error"]["code"], -32001);
    let page = call(&server, "ListTaskPushNotificationConfigs", list).await;
    assert_eq!(page["configs"], json!([second]));
}

#[tokio::test]
async fn configurations_of_0_3_are_nested_and_found_by_their_task_alone() {
    let server = pushing(options()).await;
    let task = send_v0_3(&server, "hold", Value::Null).await;
    let set = json!({"taskId": task["id"], "pushNotificationConfig": {"url": URL, "token": "t",
        "authentication": {"schemes": ["Bearer", "Basic"], "credentials": "c"}}});
    let stored = json!({"taskId": task["id"], "pushNotificationConfig": {"id": task["id"], "url": URL,
        "token": "t", "authentication": {"schemes": ["Bearer"], "credentials": "c"}}});
    assert_eq!(call(&server, "tasks/pushNotificationConfig/set", set).await, stored);
    let by_task = json!({"id": task["id"]});
    assert_eq!(call(&server, "tasks/pushNotificationConfig/get", by_task.clone()).await, stored);
    let by_id = json!({"id": task["id"], "pushNotificationConfigId": task["id"]});
    assert_eq!(call(&server, "tasks/pushNotificationConfig/get", by_id.clone()).await, stored);
    assert_eq!(call(&server, "tasks/pushNotificationConfig/list", by_task.clone()).await, json!([stored]));
    let answer = call_as(&server, None, "tasks/pushNotificationConfig/delete", by_id).await;
    assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": null}));
    let gone = call_as(&server, None, "tasks/pushNotificationConfig/get", by_task).await;
    assert_eq!(gone["error"]["code"], -32001);
}

#[tokio::test]
async fn a_task_that_has_ended_has_configurations_too() {
    let server = pushing(options()).await;
    let task = send(&server, "hold", Value::Null).await;
    call(&server, "CancelTask", json!({"id": task["id"]})).await;
    let config = json!({"taskId": task["id"], "id": "late", "url": URL});
    assert_eq!(call(&server, "CreateTaskPushNotificationConfig", config.clone()).await, config);
    assert!(!server.worker.pushes.as_ref().unwrap().serves("t1"), "nothing is left to tell");
    let read = json!({"taskId": task["id"], "id": "late"});
    assert_eq!(call(&server, "GetTaskPushNotificationConfig", read.clone()).await, config);
    assert_eq!(call(&server, "DeleteTaskPushNotificationConfig", read).await, Value::Null);
}

#[tokio::test]
async fn bad_configurations_are_refused_where_they_are_wrong() {
    let server = pushing(options()).await;
    let task = send(&server, "hold", Value::Null).await;
    let id = &task["id"];
    let long = "x".repeat(5000);
    let create = "CreateTaskPushNotificationConfig";
    let set = "tasks/pushNotificationConfig/set";
    let cases = [
        (create, json!({"taskId": id}), -32602, "url: is required"),
        (create, json!({"url": URL}), -32602, "taskId: is required"),
        (create, json!({"taskId": id, "url": "nonsense"}), -32602, "url: relative URL"),
        (create, json!({"taskId": id, "url": "ftp://example.com/"}), -32602, "url: the scheme"),
        (
            create,
            json!({"taskId": id, "url": "http://u:p@example.com/"}),
            -32602,
            "url: a URL must not contain a user name",
        ),
        (create, json!({"taskId": id, "url": "http://10.0.0.1/"}), -32602, "url: 10.0.0.1 is a private"),
        (create, json!({"taskId": id, "url": "http://[::1]/"}), -32602, "url: ::1 is a loopback"),
        (create, json!({"taskId": id, "url": "http://0xa9fea9fe/"}), -32602, "metadata"),
        (create, json!({"taskId": id, "url": "http://localhost/"}), -32602, "localhost"),
        (create, json!({"taskId": id, "url": format!("http://h/{long}")}), -32602, "url: longer"),
        (create, json!({"taskId": id, "url": URL, "token": long}), -32602, "token: longer"),
        (create, json!({"taskId": id, "url": URL, "token": "a\nb"}), -32602, "token: holds"),
        (create, json!({"taskId": id, "url": URL, "authentication": {}}), -32602, "authentication.scheme"),
        (create, json!({"taskId": id, "url": 7}), -32602, "url"),
        (create, json!({"taskId": "nope", "url": URL}), -32001, "nope"),
        ("GetTaskPushNotificationConfig", json!({"taskId": id}), -32602, "id: is required"),
        ("GetTaskPushNotificationConfig", json!({"taskId": "nope", "id": "x"}), -32001, "nope"),
        ("ListTaskPushNotificationConfigs", json!({"taskId": id, "pageSize": -1}), -32602, "pageSize"),
        ("ListTaskPushNotificationConfigs", json!({"taskId": "nope"}), -32001, "nope"),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": id}), -32602, "id: is required"),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": "nope", "id": "x"}), -32001, "nope"),
        (set, json!({"taskId": id}), -32602, "pushNotificationConfig: is required"),
        (set, json!({"taskId": id, "pushNotificationConfig": {}}), -32602, "pushNotificationConfig.url"),
        (
            set,
            json!({"taskId": id, "pushNotificationConfig": {"url": "http://127.1.1.1/"}}),
            -32602,
            "pushNotificationConfig.url: 127.1.1.1 is a loopback",
        ),
        (set, json!({"taskId": "nope", "pushNotificationConfig": {"url": URL}}), -32001, "nope"),
        ("tasks/pushNotificationConfig/get", json!({}), -32602, "id: is required"),
        ("tasks/pushNotificationConfig/delete", json!({"id": id}), -32602, "id: is required"),
        ("tasks/pushNotificationConfig/list", json!({"id": "nope"}), -32001, "nope"),
    ];
    for (method, params, code, text) in cases {
        let answer = call_as(&server, None, method, params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(text), "{method} {params}: {message}");
        assert!(!message.contains(&long) && !message.contains("a\nb"), "a secret is not repeated");
    }
    let list = call(&server, "ListTaskPushNotificationConfigs", json!({"taskId": id})).await;
    assert_eq!(list["configs"], json!([]));
}

#[tokio::test]
async fn a_message_with_a_bad_configuration_begins_nothing() {
    let server = pushing(options()).await;
    let message = json!({"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hold"}]});
    let params = json!({"message": message,
        "configuration": {"taskPushNotificationConfig": {"url": "http://169.254.169.254/"}}});
    for method in ["SendMessage", "SendStreamingMessage"] {
        let answer = call_as(&server, None, method, params.clone()).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("configuration.taskPushNotificationConfig.url: 169.254.169.254"),
            "{message}"
        );
    }
    assert!(server.worker.log("t1").is_none());
}

#[tokio::test]
async fn a_task_has_so_many_configurations_and_no_more() {
    let server = pushing(options()).await;
    let task = send(&server, "hold", Value::Null).await;
    let create = async |id: &str| {
        let config = json!({"taskId": task["id"], "id": id, "url": URL});
        call_as(&server, None, "CreateTaskPushNotificationConfig", config).await
    };
    for number in 0..16 {
        assert_eq!(create(&number.to_string()).await.get("error"), None);
    }
    assert_eq!(create("16").await["error"]["code"], -32602);
    assert_eq!(create("3").await.get("error"), None, "an old one is replaced");
}

#[tokio::test]
async fn without_the_capability_all_of_it_is_refused() {
    let server = start().await;
    for method in [
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
    ] {
        for params in [json!({}), json!({"taskId": "t", "id": "t", "url": URL})] {
            let answer = call_as(&server, None, method, params).await;
            assert_eq!(answer["error"]["code"], -32003, "{method}: {answer}");
        }
    }
}
