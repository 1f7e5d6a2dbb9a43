//! The objects of 1.0, member by member, as `a2a.proto` has them: what must be there, and that nothing else is.

use serde_json::Value;

use crate::acts::expect::Fault;

/// What a member holds.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Flag,
    /// Whatever JSON there is.
    Any,
    /// One of these words.
    Word(&'static [&'static str]),
    One(&'static Shape),
    List(&'static Kind),
    /// A map from names to these.
    Map(&'static Kind),
}

/// A member: its name, whether it must be there, what it holds.
type Member = (&'static str, bool, Kind);

/// An object. Of the members in `one_of`, exactly one is there.
struct Shape {
    name: &'static str,
    members: &'static [Member],
    one_of: &'static [&'static str],
}

const STATES: &[&str] = &[
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

static REPLY: Shape = Shape {
    name: "SendMessageResponse",
    members: &[("task", false, Kind::One(&TASK)), ("message", false, Kind::One(&MESSAGE))],
    one_of: &["task", "message"],
};

static EVENT: Shape = Shape {
    name: "StreamResponse",
    members: &[
        ("task", false, Kind::One(&TASK)),
        ("message", false, Kind::One(&MESSAGE)),
        ("statusUpdate", false, Kind::One(&STATUS_UPDATE)),
        ("artifactUpdate", false, Kind::One(&ARTIFACT_UPDATE)),
    ],
    one_of: &["task", "message", "statusUpdate", "artifactUpdate"],
};

static TASK: Shape = Shape {
    name: "Task",
    members: &[
        ("id", true, Kind::Text),
        ("contextId", true, Kind::Text),
        ("status", true, Kind::One(&STATUS)),
        ("artifacts", false, Kind::List(&Kind::One(&ARTIFACT))),
        ("history", false, Kind::List(&Kind::One(&MESSAGE))),
        ("metadata", false, Kind::Map(&Kind::Any)),
    ],
    one_of: &[],
};

static STATUS: Shape = Shape {
    name: "TaskStatus",
    members: &[
        ("state", true, Kind::Word(STATES)),
        ("message", false, Kind::One(&MESSAGE)),
        ("timestamp", false, Kind::Text),
    ],
    one_of: &[],
};

static MESSAGE: Shape = Shape {
    name: "Message",
    members: &[
        ("messageId", true, Kind::Text),
        ("contextId", false, Kind::Text),
        ("taskId", false, Kind::Text),
        ("role", true, Kind::Word(&["ROLE_USER", "ROLE_AGENT"])),
        ("parts", true, Kind::List(&Kind::One(&PART))),
        ("metadata", false, Kind::Map(&Kind::Any)),
        ("extensions", false, Kind::List(&Kind::Text)),
        ("referenceTaskIds", false, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

static PART: Shape = Shape {
    name: "Part",
    members: &[
        ("text", false, Kind::Text),
        ("raw", false, Kind::Text),
        ("url", false, Kind::Text),
        ("data", false, Kind::Any),
        ("metadata", false, Kind::Map(&Kind::Any)),
        ("filename", false, Kind::Text),
        ("mediaType", false, Kind::Text),
    ],
    one_of: &["text", "raw", "url", "data"],
};

static ARTIFACT: Shape = Shape {
    name: "Artifact",
    members: &[
        ("artifactId", true, Kind::Text),
        ("name", false, Kind::Text),
        ("description", false, Kind::Text),
        ("parts", true, Kind::List(&Kind::One(&PART))),
        ("metadata", false, Kind::Map(&Kind::Any)),
        ("extensions", false, Kind::List(&Kind::Text)),
    ],
    one_of: &[],
};

static STATUS_UPDATE: Shape = Shape {
    name: "TaskStatusUpdateEvent",
    members: &[
        ("taskId", true, Kind::Text),
        ("contextId", true, Kind::Text),
        ("status", true, Kind::One(&STATUS)),
        ("metadata", false, Kind::Map(&Kind::Any)),
    ],
    one_of: &[],
};

static ARTIFACT_UPDATE: Shape = Shape {
    name: "TaskArtifactUpdateEvent",
    members: &[
        ("taskId", true, Kind::Text),
        ("contextId", true, Kind::Text),
        ("artifact", true, Kind::One(&ARTIFACT)),
        ("append", false, Kind::Flag),
        ("lastChunk", false, Kind::Flag),
        ("metadata", false, Kind::Map(&Kind::Any)),
    ],
    one_of: &[],
};

static CARD: Shape = Shape {
    name: "AgentCard",
    members: &[
        ("name", true, Kind::Text),
        ("description", true, Kind::Text),
        ("supportedInterfaces", true, Kind::List(&Kind::One(&INTERFACE))),
        ("provider", false, Kind::One(&PROVIDER)),
        ("version", true, Kind::Text),
        ("documentationUrl", false, Kind::Text),
        ("capabilities", true, Kind::One(&CAPABILITIES)),
        ("securitySchemes", false, Kind::Map(&Kind::Map(&Kind::Any))),
        ("securityRequirements", false, Kind::List(&Kind::Map(&Kind::Map(&Kind::Any)))),
        ("defaultInputModes", true, Kind::List(&Kind::Text)),
        ("defaultOutputModes", true, Kind::List(&Kind::Text)),
        ("skills", true, Kind::List(&Kind::One(&SKILL))),
        ("signatures", false, Kind::List(&Kind::Map(&Kind::Any))),
        ("iconUrl", false, Kind::Text),
    ],
    one_of: &[],
};

static INTERFACE: Shape = Shape {
    name: "AgentInterface",
    members: &[
        ("url", true, Kind::Text),
        ("protocolBinding", true, Kind::Text),
        ("protocolVersion", true, Kind::Text),
        ("tenant", false, Kind::Text),
    ],
    one_of: &[],
};

static PROVIDER: Shape = Shape {
    name: "AgentProvider",
    members: &[("url", true, Kind::Text), ("organization", true, Kind::Text)],
    one_of: &[],
};

static CAPABILITIES: Shape = Shape {
    name: "AgentCapabilities",
    members: &[
        ("streaming", false, Kind::Flag),
        ("pushNotifications", false, Kind::Flag),
        ("extensions", false, Kind::List(&Kind::One(&EXTENSION))),
        ("extendedAgentCard", false, Kind::Flag),
    ],
    one_of: &[],
};

static EXTENSION: Shape = Shape {
    name: "AgentExtension",
    members: &[
        ("uri", true, Kind::Text),
        ("description", false, Kind::Text),
        ("required", false, Kind::Flag),
        ("params", false, Kind::Map(&Kind::Any)),
    ],
    one_of: &[],
};

static SKILL: Shape = Shape {
    name: "AgentSkill",
    members: &[
        ("id", true, Kind::Text),
        ("name", true, Kind::Text),
        ("description", true, Kind::Text),
        ("tags", true, Kind::List(&Kind::Text)),
        ("examples", false, Kind::List(&Kind::Text)),
        ("inputModes", false, Kind::List(&Kind::Text)),
        ("outputModes", false, Kind::List(&Kind::Text)),
        ("securityRequirements", false, Kind::List(&Kind::Map(&Kind::Map(&Kind::Any)))),
    ],
    one_of: &[],
};

/// The answer to a message.
pub(super) fn task(root: &Value) -> Result<(), Fault> {
    fits(Kind::One(&REPLY), root, "answer")
}

/// An event of a stream, or of a push notification.
pub(super) fn event(root: &Value) -> Result<(), Fault> {
    fits(Kind::One(&EVENT), root, "event")
}

pub(super) fn card(root: &Value) -> Result<(), Fault> {
    fits(Kind::One(&CARD), root, "card")
}

fn fits(kind: Kind, value: &Value, path: &str) -> Result<(), Fault> {
    let wrong = |what: &str| Err(Fault::new(format!("{path} is {value}, not {what}")));
    match (kind, value) {
        (Kind::Any, _) | (Kind::Text, Value::String(_)) | (Kind::Flag, Value::Bool(_)) => Ok(()),
        (Kind::Word(words), Value::String(word)) if words.contains(&&**word) => Ok(()),
        (Kind::List(kind), Value::Array(list)) => {
            list.iter().enumerate().try_for_each(|(at, value)| fits(*kind, value, &format!("{path}[{at}]")))
        }
        (Kind::Map(kind), Value::Object(map)) => {
            map.iter().try_for_each(|(name, value)| fits(*kind, value, &format!("{path}.{name}")))
        }
        (Kind::One(shape), Value::Object(map)) => {
            for (name, value) in map {
                let member = shape.members.iter().find(|(known, ..)| known == name);
                match member {
                    Some((.., kind)) => fits(*kind, value, &format!("{path}.{name}"))?,
                    None => return Err(Fault::new(format!("{path}: {} has no member {name}", shape.name))),
                }
            }
            let missing = shape.members.iter().find(|(name, needed, _)| *needed && !map.contains_key(*name));
            if let Some((name, ..)) = missing {
                return Err(Fault::new(format!("{path}: {} lacks {name}", shape.name)));
            }
            let chosen = shape.one_of.iter().filter(|name| map.contains_key(**name)).count();
            if !shape.one_of.is_empty() && chosen != 1 {
                return Err(Fault::new(format!("{path} needs exactly one of {}", shape.one_of.join(", "))));
            }
            Ok(())
        }
        (Kind::Text, _) => wrong("a text"),
        (Kind::Flag, _) => wrong("a boolean"),
        (Kind::Word(_), _) => wrong("a known word"),
        (Kind::List(_), _) => wrong("a list"),
        (Kind::Map(_) | Kind::One(_), _) => wrong("an object"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_has_its_members_and_no_others() {
        let status = || json!({"state": "TASK_STATE_COMPLETED"});
        let fine = json!({"task": {"id": "t", "contextId": "c", "status": status()}});
        assert_eq!(task(&fine), Ok(()));
        for broken in [
            json!({"task": {"id": "t", "status": status()}}),
            json!({"task": {"id": "t", "contextId": "c", "status": {"state": "completed"}}}),
            json!({"task": {"id": "t", "contextId": "c", "status": status(), "kind": "task"}}),
            json!({"task": {"id": 1, "contextId": "c", "status": status()}}),
            json!({}),
            json!([]),
        ] {
            assert!(task(&broken).is_err(), "{broken}");
        }
        let parts = json!([{"text": "a", "data": 1}]);
        let artifact = json!({"artifactId": "a", "parts": parts});
        assert!(
            event(&json!({"artifactUpdate": {"taskId": "t", "contextId": "c", "artifact": artifact}}))
                .is_err()
        );
    }
}
