//! The researcher, the deep thinker and the writer of the catalogue on a task over this repository, with real tools.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use caipe_tests::peers;
use caipe_tests::supervisor::{Setup, Supervisor};

/// Each agent does its part; the researcher and the deep thinker also try what they must not, and the writer ends too early once.
const SCRIPT: &str = r##"
turns:
  - when: { agent: supervisor, turn: 0 }
    reply: { calls: [{ name: task, arguments: { subagent_type: researcher, description: "What happens to kept texts? Write notes to /.scratch/research-kept.md." } }] }
  - when: { agent: supervisor, turn: 1 }
    reply: { calls: [{ name: task, arguments: { subagent_type: deep-thinker, description: "Is that sound? Read /.scratch/research-kept.md." } }] }
  - when: { agent: supervisor, turn: 2 }
    reply: { calls: [{ name: task, arguments: { subagent_type: writer, description: "Write /.scratch/report.md from /.scratch/research-kept.md." } }] }
  - when: { agent: supervisor, turn: 3 }
    reply: { calls: [{ name: grep, arguments: { pattern: "/.history", path: /.scratch/report.md } }] }
  - when: { agent: supervisor }
    reply: { calls: [{ name: PlatformEngineerResponse, arguments: { is_task_complete: true, require_user_input: false, content: "{% for result in results %}<{{ result.content }}>{% endfor %}" } }] }

  - when: { agent: researcher, turn: 0 }
    reply: { calls: [{ name: search_files, arguments: { path: "ROOT/docs", pattern: "**/context.md" } }] }
  - when: { agent: researcher, turn: 1 }
    reply: { calls: [{ name: read_text_file, arguments: { path: "{{ last_result }}", head: 20 } }] }
  - when: { agent: researcher, turn: 2 }
    reply:
      calls:
        - { name: write_file, arguments: { file_path: /.scratch/research-kept.md, content: "Source: docs/context.md:1\n{{ last_result }}" } }
        - { name: write_file, arguments: { file_path: /report.md, content: "no" } }
  - when: { agent: researcher }
    reply: { text: "Older texts give way (docs/context.md:1). Notes: /.scratch/research-kept.md. {{ last_result }}" }

  - when: { agent: deep-thinker, turn: 0 }
    reply:
      calls:
        - { name: grep, arguments: { pattern: "oldest first", path: /.scratch/research-kept.md } }
        - { name: write_file, arguments: { file_path: /.scratch/thoughts.md, content: "no" } }
  - when: { agent: deep-thinker }
    reply: { text: "It is sound: {% for result in results %}[{{ result.content[:110] }}]{% endfor %}" }

  - when: { agent: writer, user: "Verification", turn: 0 }
    reply: { calls: [{ name: read_file, arguments: { file_path: /.scratch/report.md, limit: 1 } }] }
  - when: { agent: writer, user: "Verification" }
    reply: { text: "/.scratch/report.md is written and read again: {{ last_result[:20] }}" }
  - when: { agent: writer, turn: 0 }
    reply: { calls: [{ name: read_file, arguments: { file_path: /.scratch/research-kept.md } }] }
  - when: { agent: writer, turn: 1 }
    reply: { calls: [{ name: write_file, arguments: { file_path: /.scratch/report.md, content: "# Kept texts\n\n{{ last_result }}" } }] }
  - when: { agent: writer }
    reply: { text: "Done." }
"##;

fn setup(files: &Path, root: &Path) -> Result<Setup> {
    let (files, root) = (files.display(), root.display());
    let resource = format!(
        "apiVersion: caipe.io/v1alpha1
kind: CaipeSupervisor
metadata: {{ name: team }}
spec:
  model: {{ provider: scripted, script: {{ path: script.yaml }} }}
  agents:
    - name: researcher
      mcp: [{{ name: repository, stdio: {{ command: {files}, args: [{root}/docs] }} }}]
      tools: [search_files, read_text_file]
    - name: deep-thinker
    - name: writer
"
    );
    Setup::of(&resource, &SCRIPT.replace("ROOT", &root.to_string()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_team_reads_this_repository_and_writes_a_document() -> Result<()> {
    let Some(files) = peers::npm("mcp-server-filesystem") else { return Ok(()) };
    let supervisor = setup(&files, root()?)?.start().await?;
    check(&supervisor).await
}

/// Without a key, as on a laptop.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_the_team_in_a_process_of_its_own_shares_the_files_too() -> Result<()> {
    let Some(files) = peers::npm("mcp-server-filesystem") else { return Ok(()) };
    let setup = setup(&files, root()?)?;
    let researcher = setup.clone().serving(["agent", "researcher"]).start().await?;
    let setup = setup.env("DISTRIBUTED_AGENTS", "researcher").env("RESEARCHER_AGENT_URL", researcher.url());
    check(&setup.start().await?).await
}

fn root() -> Result<&'static Path> {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("no parent folder")
}

/// What the team does, wherever its members run.
async fn check(supervisor: &Supervisor) -> Result<()> {
    let answer = supervisor.ask("What happens to kept texts?").await?;
    let text = answer.result()?;
    let results: Vec<&str> = text.split_inclusive('>').collect();
    let [researched, thought, written, found, ..] = results.as_slice() else { anyhow::bail!("{text}") };
    ensure!(researched.contains("you may write below /.scratch/ only"), "{researched}");
    ensure!(
        thought.contains("/.scratch/research-kept.md:") && thought.contains("Kept texts give way"),
        "{thought}"
    );
    ensure!(thought.contains("no such tool"), "the deep thinker writes nothing: {thought}");
    ensure!(written.contains("read again") && written.contains("# Kept texts"), "{written}");
    // The words of the documentation are in the report; the supervisor read only the short answers before.
    ensure!(
        found.contains("/.scratch/report.md:") && found.contains("messages that no longer fit"),
        "{found}"
    );
    for short in [researched, thought, written] {
        ensure!(short.len() < 600 && !short.contains("messages that no longer fit"), "{short}");
    }
    let calls = answer.texts("tool_notification_start").concat();
    for call in [
        "Researcher: Calling tool: Read_Text_File",
        "Deep-Thinker: Calling tool: Grep",
        "Writer: Calling tool: Write_File",
    ] {
        ensure!(calls.to_lowercase().contains(&call.to_lowercase()), "{call} is missing in {calls}");
    }
    Ok(())
}
