//! An agent with a shell, web pages, a workspace and a verification; one that knows itself, asks models and reads tasks.

use anyhow::{Context, Result, ensure};
use caipe_tests::supervisor::Setup;
use caipe_tests::token_issuer::{AUDIENCE, ISSUER, Issuer};
use serde_json::{Value, json};

/// The agent writes a script and reports success at once; reminded, it runs the script, and then a check.
const SCRIPT: &str = r##"
turns:
  - when: { agent: supervisor, turn: 0 }
    reply: { calls: [{ name: task, arguments: { subagent_type: builder, description: build it } }] }
  - when: { agent: supervisor }
    reply: { calls: [{ name: PlatformEngineerResponse, arguments: { is_task_complete: true, require_user_input: false, content: "{{results[0].content}}" } }] }
  - when: { agent: builder, user: "Verification", turn: 0 }
    reply: { calls: [{ name: shell_exec, arguments: { command: "./hello.sh > out.txt; env; cat /proc/self/environ" } }] }
  - when: { agent: builder, user: "Verification", turn: 1 }
    reply: { calls: [{ name: shell_exec, arguments: { command: "grep -c hello out.txt" } }, { name: web_fetch, arguments: { url: "http://169.254.169.254/latest" } }] }
  - when: { agent: builder, user: "Verification" }
    reply: { text: "Verified. {% for result in results %}<{{result.content}}>{% endfor %}" }
  - when: { agent: builder, turn: 0 }
    reply: { calls: [{ name: write_file, arguments: { file_path: /hello.sh, content: "#!/bin/sh\necho hello\n" } }] }
  - when: { agent: builder }
    reply: { text: "Done." }
"##;

fn setup(auto_approve: &str) -> Result<Setup> {
    let resource = format!(
        "apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: {{ name: domains }}
spec:
  model: {{ provider: scripted, script: {{ path: script.yaml }} }}
  agents:
    - name: builder
      identity: {{ inline: {{ title: Builder, description: Builds., systemPrompt: You build. }} }}
      shell: {{ timeoutSeconds: 30 }}
      web: {{ allow: [example.com] }}
      autoApprove: [{auto_approve}]
      workspace: {{}}
      verification: {{}}
"
    );
    Ok(Setup::of(&resource, SCRIPT)?.env("SECRET_TOKEN", "do-not-show"))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_verifies_in_its_shell_what_it_wrote() -> Result<()> {
    let supervisor = setup("shell_exec")?.start().await?;
    let answer = supervisor.ask("go").await?;
    let text = answer.result()?;
    ensure!(text.starts_with("Verified."), "{text}");
    ensure!(!text.contains("do-not-show") && !text.contains("Not verified"), "{text}");
    ensure!(text.contains("/out.txt"), "the first command names the file that it wrote: {text}");
    ensure!(text.contains("1\n"), "the second command reads the file of the first: {text}");
    ensure!(text.contains("not allowed") || text.contains("refused"), "the address is not listed: {text}");
    let calls = answer.texts("tool_notification_start").concat();
    ensure!(calls.matches("Calling tool: Shell_Exec").count() == 2, "{calls}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_asks_a_person_unless_the_agent_may_run_it() -> Result<()> {
    let supervisor = setup("web_fetch")?.start().await?;
    let answer = supervisor.ask("go").await?;
    ensure!(answer.outline().contains("input-required"), "{}", answer.outline());
    Ok(())
}

/// The helper calls what the request names, and answers with the results.
const HELPER: &str = r#"
turns:
  - { when: { agent: helper question }, reply: { text: "It is four." } }
  - when: { agent: helper, user: describe, turn: 0 }
    reply: { calls: [{ name: describe_self, arguments: {} }] }
  - when: { agent: helper, user: sum, turn: 0 }
    reply: { calls: [{ name: list_models, arguments: {} }, { name: ask_model, arguments: { model: small, prompt: two and two } }, { name: ask_model, arguments: { model: large, prompt: two and two } }] }
  - when: { agent: helper, user: list, turn: 0 }
    reply: { calls: [{ name: tasks_list, arguments: { state: completed, limit: 5 } }] }
  - when: { agent: helper, user: read, turn: 0 }
    reply: { calls: [{ name: tasks_get, arguments: { id: "{{ user | replace('read ', '') }}" } }] }
  - when: { agent: helper, user: everything, turn: 0 }
    reply: { calls: [{ name: describe_self, arguments: {} }, { name: list_models, arguments: {} }, { name: ask_model, arguments: { model: small, prompt: a } }, { name: tasks_list, arguments: {} }, { name: tasks_get, arguments: { id: a } }] }
  - when: { agent: helper }
    reply: { text: "{% for result in results %}<{{ result.content }}>{% endfor %}" }
  - when: { agent: supervisor, user: note }
    reply: { calls: [{ name: PlatformEngineerResponse, arguments: { is_task_complete: true, require_user_input: false, content: "noted: {{ user }}" } }] }
  - when: { agent: supervisor, turn: 0 }
    reply: { calls: [{ name: task, arguments: { subagent_type: helper, description: "{{ user }}" } }] }
  - when: { agent: supervisor }
    reply: { calls: [{ name: PlatformEngineerResponse, arguments: { is_task_complete: true, require_user_input: false, content: "{{ results[0].content }}" } }] }
"#;

fn helper(domains: &str) -> Result<Setup> {
    let resource = format!(
        "apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: {{ name: domains }}
spec:
  model: {{ provider: scripted, script: {{ path: script.yaml }} }}
  agents:
    - name: helper
      identity: {{ inline: {{ title: The Helper, description: Helps., systemPrompt: You help. }} }}
      requireApproval: [jq]
      budget: {{ tokens: 100000 }}
{domains}"
    );
    Setup::of(&resource, HELPER)
}

const DOMAINS: &str = "      introspection: {}
      models: { allow: [small] }
      tasks: {}
";

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_for_itself_for_models_and_for_tasks_are_off_by_default() -> Result<()> {
    let supervisor = helper("")?.start().await?;
    let answer = supervisor.ask("everything").await?;
    let text = answer.result()?;
    for tool in ["describe_self", "list_models", "ask_model", "tasks_list", "tasks_get"] {
        ensure!(text.contains(tool), "{text}");
    }
    ensure!(!answer.texts("tool_notification_start").concat().contains("Calling tool"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_describes_itself() -> Result<()> {
    let supervisor = helper(DOMAINS)?.env("SECRET_TOKEN", "do-not-show").start().await?;
    let text = supervisor.ask("describe").await?.result()?;
    let found = text.trim_start_matches('<').trim_end_matches('>');
    let described: Value = serde_json::from_str(found).with_context(|| text.clone())?;
    assert_eq!((&described["name"], &described["title"]), (&json!("helper"), &json!("The Helper")));
    assert_eq!(described["model"], json!("scripted/script"));
    let tools = described["tools"]["built-in"].to_string();
    for tool in [r#""jq","needsApproval":true"#, r#"{"name":"ask_model"}"#, r#"{"name":"tasks_list"}"#] {
        ensure!(tools.contains(tool), "{tools}");
    }
    let tokens = &described["budget"]["tokens"];
    assert_eq!(tokens["most"], json!(100_000));
    let used = tokens["used"].as_u64().context("no number")?;
    ensure!(used > 0 && tokens["left"] == json!(100_000 - used), "{tokens}");
    ensure!(!text.contains("do-not-show") && !text.contains("127.0.0.1"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_asks_the_permitted_models_only() -> Result<()> {
    let supervisor = helper(DOMAINS)?.start().await?;
    let text = supervisor.ask("sum").await?.result()?;
    ensure!(text.starts_with("<small><It is four.><The model `large` is not permitted."), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_reads_the_tasks_of_its_person_and_of_nobody_else() -> Result<()> {
    let issuer = Issuer::start().await?;
    check_tasks(&helper(DOMAINS)?, &issuer).await
}

/// The supervisor answers its calls.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_in_a_process_of_its_own_reads_the_same_tasks() -> Result<()> {
    let (setup, issuer) = (helper(DOMAINS)?, Issuer::start().await?);
    let agent = setup.clone().serving(["agent", "helper"]).start().await?;
    let remote = setup.env("DISTRIBUTED_AGENTS", "helper").env("HELPER_AGENT_URL", agent.url());
    check_tasks(&remote, &issuer).await?;
    let alone = agent.ask("list").await?.texts("complete_result").concat();
    ensure!(
        alone.contains("no such tool") && !alone.contains("note alpha"),
        "another client has no tasks: {alone}"
    );
    Ok(())
}

async fn check_tasks(setup: &Setup, issuer: &Issuer) -> Result<()> {
    let setup = setup.clone().env("A2A_AUTH_OAUTH2", "true").env("JWKS_URI", issuer.url());
    let supervisor = setup.env("ISSUER", ISSUER).env("AUDIENCE", AUDIENCE).start().await?;
    let (ann, bob) = (issuer.token("ann", &json!({}))?, issuer.token("bob", &json!({}))?);
    let of_ann = supervisor.send_with(&ann, "note alpha").await?;
    let of_bob = supervisor.send_with(&bob, "note bravo").await?;
    let id = |task: &Value| task["id"].as_str().map(str::to_owned).context("no task");
    let (alpha, bravo) = (id(&of_ann)?, id(&of_bob)?);
    let listed = supervisor.send_with(&ann, "list").await?["artifacts"].to_string();
    ensure!(listed.contains(&alpha) && listed.contains("note alpha"), "{listed}");
    ensure!(!listed.contains(&bravo) && !listed.contains("bravo"), "{listed}");
    let read = supervisor.send_with(&ann, &format!("read {alpha}")).await?["artifacts"].to_string();
    ensure!(read.contains("noted: note alpha"), "{read}");
    let refused = supervisor.send_with(&ann, &format!("read {bravo}")).await?["artifacts"].to_string();
    ensure!(refused.contains("There is no task") && !refused.contains("noted: note bravo"), "{refused}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_acts_for_several_people_does_not_mix_their_tasks() -> Result<()> {
    let supervisor = helper(DOMAINS)?.start().await?;
    let ask = async |user: &str, text: &str| -> Result<String> {
        let task = supervisor.send_for(&format!("{user}@example.com"), text).await?;
        Ok(task["artifacts"].to_string())
    };
    ask("ann", "note alpha").await?;
    ask("bob", "note bravo").await?;
    let listed = ask("bob", "list").await?;
    ensure!(listed.contains("note bravo") && !listed.contains("alpha"), "{listed}");
    Ok(())
}
