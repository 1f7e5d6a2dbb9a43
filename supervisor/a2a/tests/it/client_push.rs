//! Push configurations, in the shapes of both versions.

use caipe_a2a::ProtocolVersion::{self, V0_3, V1_0};
use caipe_a2a::client::{A2aClient, ClientError, ClientOptions};
use caipe_a2a::model::{AuthenticationInfo, TaskPushNotificationConfig};
use serde_json::{Value, json};

use crate::peer::{Answer, Peer};

/// Answers like a server that keeps one configuration; lists come in two pages in 1.0.
async fn peer(version: ProtocolVersion) -> Peer {
    let new = json!({"id": "p", "taskId": "t", "url": "https://hooks/x", "token": "n0nce", "authentication": {"scheme": "Bearer", "credentials": "s3cret"}});
    let old = json!({"taskId": "t", "pushNotificationConfig": {"id": "p", "url": "https://hooks/x", "token": "n0nce",
        "authentication": {"schemes": ["Bearer"], "credentials": "s3cret"}}});
    Peer::start(version, move |request| {
        let method = request.method();
        let paged = request.body["params"].get("pageToken").is_some();
        match method {
            "tasks/pushNotificationConfig/list" => Answer::result(&json!([old, old])),
            "ListTaskPushNotificationConfigs" if paged => {
                Answer::result(&json!({"configs": [new], "nextPageToken": ""}))
            }
            "ListTaskPushNotificationConfigs" => {
                Answer::result(&json!({"configs": [new], "nextPageToken": "2"}))
            }
            "DeleteTaskPushNotificationConfig" => Answer::result(&Value::Null),
            // As the Python SDK leaves out what is null.
            method if method.ends_with("/delete") => Answer::json(&json!({"jsonrpc": "2.0", "id": 1})),
            _ if version == V0_3 => Answer::result(&old),
            _ => Answer::result(&new),
        }
    })
    .await
}

fn config() -> TaskPushNotificationConfig {
    TaskPushNotificationConfig {
        token: Some("n0nce".to_owned()),
        authentication: Some(AuthenticationInfo {
            scheme: "Bearer".to_owned(),
            credentials: Some("s3cret".to_owned()),
        }),
        ..TaskPushNotificationConfig::new("https://hooks/x")
    }
}

#[tokio::test]
async fn configurations_are_stored_in_both_versions() {
    for version in [V0_3, V1_0] {
        let peer = peer(version).await;
        let client =
            A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
        let whole = TaskPushNotificationConfig {
            id: Some("p".to_owned()),
            task_id: Some("t".to_owned()),
            ..config()
        };
        assert_eq!(client.create_push_config("t", config()).await.unwrap(), whole);
        assert_eq!(client.push_config("t", "p").await.unwrap(), whole);
        assert_eq!(client.push_configs("t").await.unwrap(), [whole.clone(), whole]);
        client.delete_push_config("t", "p").await.unwrap();
        let sent: Vec<_> = peer.calls().iter().map(|call| call.body["params"].clone()).collect();
        let (created, one) = match version {
            V0_3 => (
                json!({"taskId": "t", "pushNotificationConfig": {"url": "https://hooks/x", "token": "n0nce",
                    "authentication": {"schemes": ["Bearer"], "credentials": "s3cret"}}}),
                json!({"id": "t", "pushNotificationConfigId": "p"}),
            ),
            V1_0 => (
                json!({"taskId": "t", "url": "https://hooks/x", "token": "n0nce",
                    "authentication": {"scheme": "Bearer", "credentials": "s3cret"}}),
                json!({"taskId": "t", "id": "p"}),
            ),
        };
        assert_eq!((&sent[0], &sent[1], sent.last().unwrap()), (&created, &one, &one));
    }
}

#[tokio::test]
async fn an_agent_that_does_not_push_says_so() {
    for version in [V0_3, V1_0] {
        let peer = Peer::start(version, |_| Answer::error(-32003)).await;
        let client =
            A2aClient::connect(&peer.url, reqwest::Client::new(), ClientOptions::default()).await.unwrap();
        let errors = [
            client.create_push_config("t", config()).await.unwrap_err(),
            client.push_config("t", "p").await.unwrap_err(),
            client.push_configs("t").await.unwrap_err(),
            client.delete_push_config("t", "p").await.unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(&error, ClientError::Remote(error) if error.code == -32003), "{error}");
        }
    }
}
