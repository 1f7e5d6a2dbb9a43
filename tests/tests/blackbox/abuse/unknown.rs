//! Members that nobody knows are ignored, wherever they are: newer versions add some.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::greeter;
use super::methods::Caller;

#[tokio::test(flavor = "multi_thread")]
async fn unknown_members_are_ignored_in_both_versions() -> Result<()> {
    let supervisor = greeter().await?;
    let caller = Caller::of(&supervisor)?;
    let unknown = json!({"deep": [1, {"er": null}]});
    let old = json!({
        "message": {"kind": "message", "role": "user", "messageId": "m", "x": unknown,
            "parts": [{"kind": "text", "text": "hi", "x": unknown}]},
        "configuration": {"blocking": true, "x": unknown},
        "x": unknown,
    });
    let new = json!({
        "message": {"role": "ROLE_USER", "messageId": "m", "x": unknown, "parts": [{"text": "hi", "x": unknown}]},
        "configuration": {"returnImmediately": false, "ifGenerationMatch": 7, "x": unknown},
        "x": unknown,
    });
    let versions = [
        (None, ["message/send", "tasks/get"], "", old),
        (Some("1.0"), ["SendMessage", "GetTask"], "/task", new),
    ];
    for (version, [send, get], task, params) in versions {
        let envelope = json!({"jsonrpc": "2.0", "id": 1, "method": send, "params": params, "x": unknown});
        let sent = caller.call(version, envelope.to_string()).await?;
        let id = sent["result"].pointer(&format!("{task}/id")).cloned().unwrap_or(Value::Null);
        ensure!(id.is_string(), "{send}: {sent}");
        let params = json!({"id": id, "historyLength": 0, "currentGeneration": 7, "x": unknown});
        let envelope = json!({"jsonrpc": "2.0", "id": 2, "method": get, "params": params});
        let got = caller.call(version, envelope.to_string()).await?;
        ensure!(got["result"]["id"] == id, "{get}: {got}");
    }
    Ok(())
}
