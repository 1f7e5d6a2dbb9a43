use super::*;

fn target(version: ProtocolVersion, tenant: Option<&str>, operation: Operation) -> Target {
    Target { version, tenant: tenant.map(str::to_owned), operation }
}

fn task(id: &str) -> String {
    id.to_owned()
}

#[test]
fn a_path_names_version_tenant_operation_and_ids() {
    let get = |id: &str| Operation::Get { task: task(id) };
    let cases = [
        ("POST", "/message:send", target(V1_0, None, Operation::Send)),
        ("POST", "/v1/message:send", target(V0_3, None, Operation::Send)),
        ("POST", "/acme/message:stream", target(V1_0, Some("acme"), Operation::Stream)),
        ("GET", "/tasks", target(V1_0, None, Operation::List)),
        ("GET", "/v1/tasks", target(V0_3, None, Operation::List)),
        ("GET", "/a%20b/tasks", target(V1_0, Some("a b"), Operation::List)),
        ("GET", "/tasks/t1", target(V1_0, None, get("t1"))),
        ("GET", "/tasks/tasks", target(V1_0, None, get("tasks"))),
        ("GET", "/tasks/a%2Fb%20%C3%A4", target(V1_0, None, get("a/b ä"))),
        ("GET", "/tasks/urn:x:1", target(V1_0, None, get("urn:x:1"))),
        ("GET", "/tasks/t1%3Acancel", target(V1_0, None, get("t1:cancel"))),
        ("POST", "/tasks/urn:x:cancel", target(V1_0, None, Operation::Cancel { task: task("urn:x") })),
        ("POST", "/v1/tasks/t1:cancel", target(V0_3, None, Operation::Cancel { task: task("t1") })),
        ("GET", "/tasks/t1:subscribe", target(V1_0, None, Operation::Subscribe { task: task("t1") })),
        ("POST", "/x/tasks/t1:subscribe", target(V1_0, Some("x"), Operation::Subscribe { task: task("t1") })),
        (
            "POST",
            "/tasks/t1/pushNotificationConfigs",
            target(V1_0, None, Operation::CreatePush { task: task("t1") }),
        ),
        (
            "GET",
            "/v1/tasks/t1/pushNotificationConfigs",
            target(V0_3, None, Operation::ListPush { task: task("t1") }),
        ),
        (
            "DELETE",
            "/tasks/t1/pushNotificationConfigs/c%2F1",
            target(V1_0, None, Operation::DeletePush { task: task("t1"), config: task("c/1") }),
        ),
        ("GET", "/extendedAgentCard", target(V1_0, None, Operation::ExtendedCard)),
        ("GET", "/v1/card", target(V0_3, None, Operation::ExtendedCard)),
    ];
    for (verb, path, expected) in cases {
        assert_eq!(parse(&verb.parse().unwrap(), path), Ok(expected), "{verb} {path}");
    }
}

#[test]
fn what_is_no_operation_says_why() {
    for (verb, path, expected) in [
        ("GET", "/message:send", PathError::Verb("POST")),
        ("HEAD", "/tasks", PathError::Verb("GET")),
        ("POST", "/tasks/t1", PathError::Verb("GET")),
        ("GET", "/tasks/t1:cancel", PathError::Verb("POST")),
        ("DELETE", "/tasks/t1:subscribe", PathError::Verb("GET, POST")),
        ("PUT", "/tasks/t1/pushNotificationConfigs/c", PathError::Verb("DELETE, GET")),
        ("POST", "/v1/card", PathError::Verb("GET")),
        ("POST", "/tasks/t1:pause", PathError::Verb("GET")),
        ("GET", "/", PathError::Path),
        ("GET", "/tasks/", PathError::Path),
        ("POST", "/tasks/:cancel", PathError::Path),
        ("GET", "//tasks", PathError::Path),
        ("GET", "/tasks/t1/artifacts", PathError::Path),
        ("GET", "/v1/extendedAgentCard", PathError::Path),
        ("GET", "/card", PathError::Path),
        ("GET", "/v1/acme/tasks", PathError::Path),
        ("GET", "/a/b/tasks", PathError::Path),
        ("GET", "/tasks/%FF", PathError::Encoding),
    ] {
        assert_eq!(parse(&verb.parse().unwrap(), path), Err(expected), "{verb} {path}");
    }
}
