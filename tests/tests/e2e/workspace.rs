//! The workspace of a remote agent on a volume, and its shell, in a restricted pod.

use anyhow::{Context, Result, ensure};
use caipe_tests::cluster::objects::CLAIMS;
use caipe_tests::live::pods::{name_of, of_agent};
use caipe_tests::live::{self, Live};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::until;
use serde_json::json;

const NAME: &str = "platform";
const AGENT: &str = "keeper";
/// The supervisor with `/bin/sh`.
const IMAGE: &str = "caipe.test/shell:1";
/// What a command tries that it must not be able to do, after what it may.
const COMMAND: &str = "cat workspace/page.md /workspace/page.md; id -u; echo by a command > workspace/command.txt; \
                       cat /proc/1/environ /var/run/secrets/kubernetes.io/serviceaccount/token /etc/caipe/spec/* /data/*; \
                       echo x > /data/x; echo x > /tmp/x; ls /data; (exec 3<>/dev/tcp/10.0.0.1/443) 2>&1; kill -9 1; true";

/// The agent writes a file and runs a command in the first conversation, and looks around in the second one.
fn scenario() -> Scenario {
    let is_agent = format!("You are the {AGENT} agent.");
    let write = json!([
        {"name": "write_file", "arguments": {"file_path": "/workspace/page.md", "content": "# Page\n"}},
        {"name": "shell_exec", "arguments": {"command": COMMAND}},
    ]);
    let read = json!([
        {"name": "grep", "arguments": {"pattern": "a", "path": "/workspace"}},
        {"name": "shell_exec", "arguments": {"command": "cat workspace/command.txt"}},
    ]);
    let results = json!({"text": "{{ user }}{% for result in results %}<{{ result.content }}>{% endfor %}"});
    let mut scenario = Scenario::new()
        .agent_with(AGENT, json!([]))
        .set("image", json!(IMAGE))
        .turn(json!({"system": is_agent, "user": "write", "turn": 0}), json!({"calls": write}))
        .turn(json!({"system": is_agent, "user": "read", "turn": 0}), json!({"calls": read}))
        .turn(json!({"system": is_agent}), results)
        .asks("write", &[AGENT])
        .asks("read", &[AGENT]);
    scenario.change_agent(AGENT, "placement", json!("Remote"));
    scenario.change_agent(AGENT, "shell", json!({}));
    scenario.change_agent(AGENT, "workspace", json!({"volume": {"size": "100Mi"}}));
    scenario
}

/// Makes a volume for the claim of the agent, as soon as the operator has made the claim.
async fn volume(live: &Live) -> Result<()> {
    let claim = async || {
        let claims = live.list(CLAIMS).await?;
        anyhow::Ok(claims.into_iter().find(|claim| name_of(claim).contains(AGENT)))
    };
    until("the agent has a claim", async || Ok(claim().await?.is_some())).await?;
    live.volume(name_of(&claim().await?.context("the claim is gone")?))
}

#[test]
fn files_and_commands_of_an_agent_stay_on_its_volume() -> Result<()> {
    live::with("workspace", async |live| {
        live.declare(NAME, &scenario())?;
        volume(live).await?;
        live.until_settled(NAME).await?;
        let written = live.ask(NAME, "write").await?.result()?;
        ensure!(written.contains("# Page\n# Page\n65532\n"), "{written}");
        ensure!(written.contains("[changed on the volume: /workspace/command.txt]"), "{written}");
        for secret in ["CAIPE_", "A2A_AUTH", "agents:", "sqlite", "eyJ"] {
            ensure!(!written.contains(secret), "a command could read {secret}: {written}");
        }
        let pods = live.pods(&of_agent(NAME, AGENT)).await?;
        live.kill_pod(pods.first().context("no pod of the agent")?).await?;
        live.until_replaced(&pods, &of_agent(NAME, AGENT)).await?;
        live.until_settled(NAME).await?;
        let read = live.ask(NAME, "read").await?.result()?;
        ensure!(read.contains("- workspace/command.txt\n- workspace/page.md"), "{read}");
        ensure!(
            read.contains("</workspace/command.txt:1:by a command\n/workspace/page.md:1:# Page>"),
            "{read}"
        );
        ensure!(read.contains("<by a command\n[exit code 0]>"), "{read}");
        Ok(())
    })
}
