//! Files of an agent's workspace on a volume: they outlive conversations and processes.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use caipe_tests::scenario::Scenario;
use caipe_tests::supervisor::{Setup, Supervisor};
use serde_json::{Value, json};

const AGENT: &str = "keeper";

/// Where the files are, below the directory of the setup.
const VOLUME: &str = "data/workspaces/keeper";

/// The agent writes and reads what the request says, with its tools and with commands.
fn scenario(workspace: &Value) -> Scenario {
    let is_agent = format!("You are the {AGENT} agent.");
    let progress =
        r#"{"accomplished": ["began"], "remaining": ["finish the page"], "decisions": [], "blockers": []}"#;
    let write = json!([
        {"name": "write_file", "arguments": {"file_path": "/workspace/docs/page.md", "content": "# Page\n"}},
        {"name": "write_file", "arguments": {"file_path": "/workspace/PROGRESS.json", "content": progress}},
        {"name": "write_file", "arguments": {"file_path": "/short-lived", "content": "x"}},
        {"name": "write_file", "arguments": {"file_path": "/workspace/../escape", "content": "x"}},
        {"name": "shell_exec", "arguments": {"command": "echo by a command > workspace/command.txt; cat workspace/docs/page.md"}},
    ]);
    let read = json!([
        {"name": "ls", "arguments": {}},
        {"name": "ls", "arguments": {"path": "/workspace"}},
        {"name": "grep", "arguments": {"pattern": "command", "path": "/workspace"}},
        {"name": "edit_file", "arguments": {"file_path": "/workspace/docs/page.md", "old_string": "Page", "new_string": "New page"}},
    ]);
    let results = json!({"text": "{{ user }}{% for result in results %}<{{ result.content }}>{% endfor %}"});
    let mut scenario = Scenario::new().agent_with(AGENT, json!([]));
    scenario.change_agent(AGENT, "workspace", workspace.clone());
    scenario.change_agent(AGENT, "shell", json!({}));
    scenario
        .turn(json!({"system": is_agent, "user": "write", "turn": 0}), json!({"calls": write}))
        .turn(json!({"system": is_agent, "user": "read", "turn": 0}), json!({"calls": read}))
        .turn(json!({"system": is_agent}), results)
        .asks("write", &[AGENT])
        .asks("read", &[AGENT])
}

/// Lets the user of commands reach the directory, where the tests and so the supervisor run as root.
fn reachable(setup: &Setup, directory: &Path) -> Result<()> {
    std::fs::create_dir_all(directory)?;
    std::fs::set_permissions(directory, PermissionsExt::from_mode(0o777))?;
    let parents = directory.ancestors().skip(1).take_while(|parent| parent.starts_with(setup.dir()));
    for parent in parents {
        std::fs::set_permissions(parent, PermissionsExt::from_mode(0o711))?;
    }
    Ok(())
}

async fn ask(supervisor: &Supervisor, text: &str) -> Result<String> {
    supervisor.ask(text).await?.result()
}

fn has(text: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(text.contains(part), "{part:?} is missing: {text}");
    }
    Ok(())
}

/// What a first process writes, a second one finds in another conversation.
async fn check(first: &Setup, second: &Setup) -> Result<()> {
    let supervisor = first.start().await?;
    let written = ask(&supervisor, "write").await?;
    let shell = "# Page\n[exit code 0]\n[changed on the volume: /workspace/command.txt]";
    has(&written, &["Wrote 7 bytes to /workspace/docs/page.md.", "\"..\" is not allowed", shell])?;
    supervisor.kill().await?;
    let supervisor = second.start().await?;
    let read = ask(&supervisor, "read").await?;
    has(
        &read,
        &[
            "- workspace/PROGRESS.json\n",
            "- workspace/command.txt\n- workspace/docs/",
            "## Outstanding Work\n\n- finish the page",
            "There are no files here.\n[The files below /workspace",
            "/workspace/command.txt (13 bytes)",
            "/workspace/docs/page.md (7 bytes)",
            "</workspace/command.txt:1:by a command>",
            "Wrote 11 bytes to /workspace/docs/page.md.",
        ],
    )?;
    ensure!(!read.contains("short-lived"), "{read}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_on_the_volume_outlive_the_conversation_and_the_process() -> Result<()> {
    let setup = scenario(&json!({"volume": {}})).setup()?;
    reachable(&setup, &setup.dir().join(VOLUME))?;
    check(&setup, &setup).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_a_process_of_its_own_has_the_same_files() -> Result<()> {
    let setup = scenario(&json!({"volume": {}})).setup()?;
    reachable(&setup, &setup.dir().join(VOLUME))?;
    let agent = setup.clone().serving(["agent", AGENT]).start().await?;
    let setup = setup.env("DISTRIBUTED_AGENTS", AGENT).env("KEEPER_AGENT_URL", agent.url());
    check(&setup, &setup).await
}

/// The folder of `--identity` has a folder `workspace`.
#[tokio::test(flavor = "multi_thread")]
async fn the_folder_of_an_agent_has_its_workspace() -> Result<()> {
    let mut scenario = scenario(&Value::Null);
    scenario.change_agent(AGENT, "shell", json!({"network": false}));
    let setup = scenario.setup()?;
    let folder = setup.dir().join("keeper");
    reachable(&setup, &folder.join("workspace"))?;
    let setup = setup
        .file("keeper/IDENTITY.md", "# Keeper\n\nYou are the keeper agent.\n")?
        .file("keeper/workspace/README.md", "Read me.\n")?;
    let agent = setup
        .clone()
        .serving(["agent", AGENT])
        .argument("--identity")
        .argument(folder.as_os_str())
        .start()
        .await?;
    let setup = setup.env("DISTRIBUTED_AGENTS", AGENT).env("KEEPER_AGENT_URL", agent.url());
    check(&setup, &setup).await?;
    let page = std::fs::read_to_string(folder.join("workspace/docs/page.md")).context("no page")?;
    ensure!(page == "# New page\n", "{page}");
    ensure!(folder.join("workspace/README.md").exists());
    Ok(())
}
