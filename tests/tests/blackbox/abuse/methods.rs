//! Every method of both versions with every fault that fits it.

use anyhow::{Context, Result, ensure};
use caipe_tests::supervisor::Supervisor;
use serde_json::{Value, json};

use super::{greeter, is_well};

/// A method, what it needs of its parameters, and parameters that are good but for a task that is none.
struct Method {
    name: &'static str,
    version: Option<&'static str>,
    needs: Needs,
    params: fn() -> Value,
    /// What good parameters come to.
    code: i64,
}

/// What a method makes of its parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// It takes none, or does not look at them before it refuses.
    Nothing,
    /// It takes an object, which may be left out.
    Object,
    /// It needs a member of this name, a string that is not empty.
    Text(&'static str),
    /// It needs an object of this name.
    Inner(&'static str),
}

const NEW: Option<&str> = Some("1.0");
const NO_TASK: i64 = -32001;

fn unknown_task() -> Value {
    json!({"id": "no-such-task"})
}

fn nothing() -> Value {
    json!({})
}

fn old_message() -> Value {
    json!({"message": {"kind": "message", "role": "user", "messageId": "m", "taskId": "no-such-task",
        "parts": [{"kind": "text", "text": "hi"}]}})
}

fn new_message() -> Value {
    json!({"message": {"role": "ROLE_USER", "messageId": "m", "taskId": "no-such-task", "parts": [{"text": "hi"}]}})
}

fn old_push() -> Value {
    json!({"taskId": "no-such-task", "pushNotificationConfig": {"id": "c", "url": "https://example.com/"}})
}

fn old_push_of_task() -> Value {
    json!({"id": "no-such-task", "pushNotificationConfigId": "c"})
}

fn new_push() -> Value {
    json!({"taskId": "no-such-task", "id": "c", "url": "https://example.com/"})
}

const fn method(
    name: &'static str,
    version: Option<&'static str>,
    needs: Needs,
    params: fn() -> Value,
    code: i64,
) -> Method {
    Method { name, version, needs, params, code }
}

const METHODS: &[Method] = &[
    method("message/send", None, Needs::Inner("message"), old_message, NO_TASK),
    method("message/stream", None, Needs::Inner("message"), old_message, NO_TASK),
    method("tasks/get", None, Needs::Text("id"), unknown_task, NO_TASK),
    method("tasks/cancel", None, Needs::Text("id"), unknown_task, NO_TASK),
    method("tasks/resubscribe", None, Needs::Text("id"), unknown_task, NO_TASK),
    method("tasks/pushNotificationConfig/set", None, Needs::Text("taskId"), old_push, NO_TASK),
    method("tasks/pushNotificationConfig/get", None, Needs::Text("id"), unknown_task, NO_TASK),
    method("tasks/pushNotificationConfig/list", None, Needs::Text("id"), unknown_task, NO_TASK),
    method("tasks/pushNotificationConfig/delete", None, Needs::Text("id"), old_push_of_task, NO_TASK),
    method("agent/getAuthenticatedExtendedCard", None, Needs::Nothing, nothing, -32007),
    method("SendMessage", NEW, Needs::Inner("message"), new_message, NO_TASK),
    method("SendStreamingMessage", NEW, Needs::Inner("message"), new_message, NO_TASK),
    method("GetTask", NEW, Needs::Text("id"), unknown_task, NO_TASK),
    method("CancelTask", NEW, Needs::Text("id"), unknown_task, NO_TASK),
    method("SubscribeToTask", NEW, Needs::Text("id"), unknown_task, NO_TASK),
    method("ListTasks", NEW, Needs::Object, || json!({"pageSize": 101}), -32602),
    method("CreateTaskPushNotificationConfig", NEW, Needs::Text("taskId"), new_push, NO_TASK),
    method("GetTaskPushNotificationConfig", NEW, Needs::Text("taskId"), new_push, NO_TASK),
    method("ListTaskPushNotificationConfigs", NEW, Needs::Text("taskId"), new_push, NO_TASK),
    method("DeleteTaskPushNotificationConfig", NEW, Needs::Text("taskId"), new_push, NO_TASK),
    method("GetExtendedAgentCard", NEW, Needs::Nothing, nothing, -32004),
];

/// A fault: what it is, the version that the client says, the whole body, and the code.
type Fault = (&'static str, Option<&'static str>, String, i64);

impl Method {
    fn body(&self, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 7, "method": self.name, "params": params})
    }

    fn faults(&self) -> Vec<Fault> {
        let mut faults = self.faults_of_the_envelope();
        faults.extend(self.faults_of_the_parameters());
        let good = self.body(&(self.params)()).to_string();
        faults.push(("parameters that are good so far", self.version, good, self.code));
        faults
    }

    fn faults_of_the_envelope(&self) -> Vec<Fault> {
        let with = |member: &str, value: Value| {
            let mut body = self.body(&(self.params)());
            body[member] = value;
            body.to_string()
        };
        let (old, huge) = (self.version.is_none(), "9".repeat(100_000));
        let mut bare = self.body(&(self.params)());
        drop(bare.as_object_mut().map(|body| body.remove("jsonrpc")));
        let mut faults = vec![
            ("another JSON-RPC", self.version, with("jsonrpc", json!("1.0")), -32600),
            ("a JSON-RPC that is no text", self.version, with("jsonrpc", json!(2.0)), -32600),
            ("an id that is an object", self.version, with("id", json!({})), -32600),
            ("an id that is too long", self.version, with("id", json!(huge)), -32600),
            ("half of it", self.version, with("id", json!(7)).split_off(10), -32700),
            // 0.3 has no code for it.
            ("a version that is none", Some("99.0"), with("id", json!(7)), if old { -32603 } else { -32009 }),
            (
                "the other version",
                if old { NEW } else { None },
                with("id", json!(7)),
                if old { -32601 } else { -32009 },
            ),
        ];
        if !old {
            // Clients of CAIPE leave it out in 0.3.
            faults.push(("no JSON-RPC", self.version, bare.to_string(), -32600));
        }
        faults
    }

    fn faults_of_the_parameters(&self) -> Vec<Fault> {
        let fault = |what, params: Value| (what, self.version, self.body(&params).to_string(), -32602);
        if self.needs == Needs::Nothing {
            return Vec::new();
        }
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let with_deep = self.body(&json!({"metadata": "DEEP"})).to_string().replace("\"DEEP\"", &deep);
        let mut faults = vec![
            fault("parameters that are a text", json!("hi")),
            fault("parameters that are a list", json!([{"id": "x"}])),
            fault("parameters that are a number", json!(7)),
        ];
        let members: &[Value] = match self.needs {
            Needs::Nothing | Needs::Object => return faults,
            Needs::Text(_) => &[json!(null), json!(7), json!(""), json!([]), json!({})],
            Needs::Inner(_) => &[json!(null), json!(7), json!("hi"), json!([]), json!({})],
        };
        let (Needs::Text(name) | Needs::Inner(name)) = self.needs else { return faults };
        faults.push(fault("parameters without anything", json!({})));
        faults.extend(members.iter().map(|value| fault("a member of another type", json!({name: value}))));
        let bare = json!({"jsonrpc": "2.0", "id": 7, "method": self.name}).to_string();
        faults.push(("no parameters", self.version, bare, -32602));
        faults.push(("parameters too deep", self.version, with_deep, -32602));
        faults
    }
}

/// A client whose calls share a connection.
pub(super) struct Caller {
    http: reqwest::Client,
    url: String,
}

impl Caller {
    pub(super) fn of(supervisor: &Supervisor) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { http, url: supervisor.url().to_owned() })
    }

    /// The answer to a body; the only event of it if it is a stream.
    pub(super) async fn call(&self, version: Option<&str>, body: String) -> Result<Value> {
        let mut request = self.http.post(&self.url).header("content-type", "application/json");
        if let Some(version) = version {
            request = request.header("a2a-version", version);
        }
        let response =
            request.header("accept", "application/json, text/event-stream").body(body).send().await?;
        ensure!(response.status() == 200, "the status is {}", response.status());
        let text = response.text().await?;
        serde_json::from_str(text.trim_start_matches("data:").trim()).context(text)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_method_refuses_every_fault_with_its_code() -> Result<()> {
    let supervisor = greeter().await?;
    let caller = Caller::of(&supervisor)?;
    let mut wrong = Vec::new();
    for method in METHODS {
        for (what, version, body, code) in method.faults() {
            let answer =
                caller.call(version, body).await.with_context(|| format!("{}: {what}", method.name))?;
            let words = answer["error"]["message"].as_str().unwrap_or_default();
            let has_id = !matches!(what, "half of it" | "an id that is an object" | "an id that is too long");
            let id = if has_id { json!(7) } else { Value::Null };
            if answer["error"]["code"] != code || answer["id"] != id || words.is_empty() || words.len() > 2000
            {
                wrong.push(format!("{}, {what}: wanted {code}, got {answer}", method.name));
            }
        }
    }
    ensure!(wrong.is_empty(), "{wrong:#?}");
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}).to_string();
    let tasks = caller.call(NEW, list).await?;
    ensure!(tasks["result"]["totalSize"] == 0, "a fault began a task: {tasks}");
    is_well(&supervisor).await
}

/// Names that are far too long come back neither as a task nor in full.
#[tokio::test(flavor = "multi_thread")]
async fn ids_of_a_megabyte_are_refused_in_few_words() -> Result<()> {
    let supervisor = greeter().await?;
    let caller = Caller::of(&supervisor)?;
    let huge = "x".repeat(1 << 20);
    let message = |member: &str| {
        let mut params = new_message();
        drop(params["message"].as_object_mut().map(|message| message.remove("taskId")));
        params["message"][member] = json!(huge);
        params
    };
    let cases = [
        ("GetTask", json!({"id": huge})),
        ("CancelTask", json!({"id": huge})),
        ("SubscribeToTask", json!({"id": huge})),
        ("SendMessage", message("taskId")),
        ("SendMessage", message("contextId")),
        (huge.as_str(), json!({})),
    ];
    for (method, params) in cases {
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        let answer = caller.call(NEW, body.to_string()).await?;
        let shown = answer.to_string();
        ensure!(answer["error"]["code"].is_i64(), "{}", shown.chars().take(500).collect::<String>());
        let name: String = method.chars().take(20).collect();
        ensure!(shown.len() < 20_000, "{name}: the refusal has {} bytes", shown.len());
    }
    is_well(&supervisor).await
}
