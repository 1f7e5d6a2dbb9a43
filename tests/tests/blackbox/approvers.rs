//! Approvals that another principal than the owner of the conversation decides.

use anyhow::{Result, ensure};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Supervisor, message, unique};
use caipe_tests::token_issuer::{AUDIENCE, ISSUER, Issuer};
use serde_json::{Value, json};

use crate::approval::careful;

/// Jira's tool `echo` needs approval, and callers need tokens of the issuer.
fn scenario(issuer: &Issuer) -> Result<Scenario> {
    let oauth2 = json!({"issuer": ISSUER, "audience": AUDIENCE, "jwksUri": issuer.url()});
    Ok(careful()?.set("auth", json!({"oauth2": oauth2})))
}

/// The result of a call in A2A 0.3, or the code of its error.
async fn call(supervisor: &Supervisor, token: &str, method: &str, params: Value) -> Result<Value> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = reqwest::Client::new().post(supervisor.url()).bearer_auth(token).json(&body);
    let answer: Value = request.send().await?.json().await?;
    Ok(if answer["error"].is_null() { answer["result"].clone() } else { answer["error"]["code"].clone() })
}

/// Approves what waits.
async fn approve(supervisor: &Supervisor, token: &str, asked: &Value, with_task: bool) -> Result<Value> {
    let mut message = json!({"role": "user", "kind": "message", "messageId": unique("message"),
        "contextId": asked["contextId"],
        "parts": [{"kind": "data", "data": {"resume": {"decisions": [{"type": "approve"}]}}}]});
    if with_task {
        message["taskId"] = asked["id"].clone();
    }
    call(supervisor, token, "message/send", json!({"message": message})).await
}

async fn ask(supervisor: &Supervisor, token: &str) -> Result<Value> {
    let asked = call(supervisor, token, "message/send", message("write it", None)).await?;
    ensure!(asked["status"]["state"] == "input-required", "{asked}");
    Ok(asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approver_decides_in_the_task_of_another_principal() -> Result<()> {
    let issuer = Issuer::start().await?;
    let supervisor =
        scenario(&issuer)?.set("approvers", json!([{"group": "leads"}])).setup()?.start().await?;
    let [ann, carl] = ["ann", "carl"].map(|name| issuer.token(name, &json!({"groups": ["sre"]})));
    let (ann, carl, bob) = (ann?, carl?, issuer.token("bob", &json!({"groups": ["sre", "leads"]}))?);
    let asked = ask(&supervisor, &ann).await?;
    let id = json!({"id": asked["id"]});

    for with_task in [true, false] {
        let refused = approve(&supervisor, &ann, &asked, with_task).await?;
        let text = refused["status"].to_string();
        ensure!(refused["status"]["state"] == "input-required" && refused["id"] == asked["id"], "{refused}");
        ensure!(refused.to_string().contains("waits for an approver (group leads)"), "{text}");
    }
    for (method, params) in [("tasks/get", &id), ("tasks/resubscribe", &id), ("tasks/cancel", &id)] {
        ensure!(call(&supervisor, &carl, method, params.clone()).await? == -32001, "{method}");
    }
    ensure!(approve(&supervisor, &carl, &asked, true).await? == -32001);
    ensure!(approve(&supervisor, &carl, &asked, false).await? == -32602);

    // The approver sees the waiting task, and nothing else of its owner.
    let seen = call(&supervisor, &bob, "tasks/get", id.clone()).await?;
    ensure!(seen["status"]["state"] == "input-required", "{seen}");
    ensure!(call(&supervisor, &bob, "tasks/cancel", id.clone()).await? == -32001);
    let push = json!({"taskId": asked["id"], "pushNotificationConfig": {"url": "https://bob.example.com"}});
    ensure!(call(&supervisor, &bob, "tasks/pushNotificationConfig/set", push).await? == -32001);
    ensure!(approve(&supervisor, &bob, &asked, false).await? == -32602);

    let approved = approve(&supervisor, &bob, &asked, true).await?;
    ensure!(approved["status"]["state"] == "completed", "{approved}");
    ensure!(approved.to_string().contains("jira says: jira: write it"), "{approved}");
    let own = call(&supervisor, &ann, "tasks/get", id.clone()).await?;
    let history = own["history"].as_array().cloned().unwrap_or_default();
    let decided = history.iter().rfind(|message| message["role"] == "user").cloned().unwrap_or_default();
    let expected = json!({"sent_by": "sub:bob", "approver_as": ["group leads"]});
    for key in ["sent_by", "approver_as"] {
        ensure!(decided["metadata"][key] == expected[key], "{decided}");
    }
    // The approver may read the result; another task of the owner stays hidden.
    ensure!(call(&supervisor, &bob, "tasks/get", id).await?["status"]["state"] == "completed");
    let other = call(&supervisor, &ann, "message/send", message("write it", None)).await?;
    let canceled = call(&supervisor, &ann, "tasks/cancel", json!({"id": other["id"]})).await?;
    ensure!(canceled["status"]["state"] == "canceled", "{canceled}");
    ensure!(call(&supervisor, &bob, "tasks/get", json!({"id": other["id"]})).await? == -32001);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_approvers_of_an_agent_replace_those_of_the_supervisor() -> Result<()> {
    let issuer = Issuer::start().await?;
    let mut scenario = scenario(&issuer)?.set("approvers", json!([{"group": "leads"}]));
    scenario.change_agent("jira", "approvers", json!([{"email": "Dora@example.com"}, {"subject": "ann"}]));
    let supervisor = scenario.setup()?.start().await?;
    let ann = issuer.token("ann", &json!({}))?;
    let manager = issuer.token("bob", &json!({"groups": ["leads"]}))?;
    let dora = issuer.token("d", &json!({"email": "dora@example.com"}))?;
    let claimed = issuer.token("e", &json!({"email": "dora@example.com", "email_verified": false}))?;
    for (token, state) in
        [(&dora, Some("completed")), (&ann, Some("completed")), (&manager, None), (&claimed, None)]
    {
        let asked = ask(&supervisor, &ann).await?;
        let decided = approve(&supervisor, token, &asked, true).await?;
        ensure!(decided["status"]["state"].as_str() == state, "{decided}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_of_the_shared_key_approves_nothing_for_approvers() -> Result<()> {
    let issuer = Issuer::start().await?;
    let setup = scenario(&issuer)?.set("approvers", json!([{"subject": "ann"}])).setup()?;
    let supervisor = setup.env("A2A_AUTH_SHARED_KEY", "s3cret").start().await?;
    let asked = ask(&supervisor, "s3cret").await?;
    let refused = approve(&supervisor, "s3cret", &asked, true).await?;
    ensure!(refused["status"]["state"] == "input-required", "{refused}");
    let approved = approve(&supervisor, &issuer.token("ann", &json!({}))?, &asked, true).await?;
    ensure!(approved["status"]["state"] == "completed", "{approved}");
    Ok(())
}
