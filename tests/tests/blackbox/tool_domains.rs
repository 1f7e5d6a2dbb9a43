//! An agent with a shell, web pages, a workspace and a verification.

use anyhow::{Result, ensure};
use caipe_tests::supervisor::Setup;

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
