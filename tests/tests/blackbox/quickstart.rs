//! The README's first page: the quick start as it is shipped, on this repository.

use anyhow::{Context, Result, ensure};
use caipe_tests::peers;
use caipe_tests::programs::workspace;
use caipe_tests::supervisor::Setup;
use std::process::Command;

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_the_readme_is_answered_from_this_repository() -> Result<()> {
    let (Some(files), Some(git)) = (peers::npm("mcp-server-filesystem"), peers::py("mcp-server-git")) else {
        return Ok(());
    };
    let path = std::env::join_paths(
        [files, git]
            .iter()
            .filter_map(|program| program.parent().map(std::path::Path::to_path_buf))
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    )?;
    let setup = Setup::new()?.in_directory(&workspace()).env("PATH", path);
    let supervisor = setup.argument("-f").argument("fixtures/quickstart.yaml").start().await?;
    let answer = supervisor.ask("what changed in this repository last?").await?;

    let plan: Vec<String> = answer.plans().concat().into_iter().map(|(agent, _, _)| agent).collect();
    ensure!(plan.contains(&"Git".to_owned()) && plan.contains(&"Files".to_owned()), "{plan:?}");
    let starts = answer.texts("tool_notification_start");
    for start in ["🔧 Git: Calling tool: Git_Log\n", "🔧 Files: Calling tool: Read_Text_File\n"] {
        ensure!(starts.iter().any(|text| text == start), "no {start:?} in {starts:?}");
    }
    let log = Command::new("git").args(["log", "-1", "--format=%H%n%s"]).current_dir(workspace()).output()?;
    let log = String::from_utf8(log.stdout)?;
    let (hash, subject) = log.trim().split_once('\n').context("this repository has no commit")?;
    let result = answer.result()?;
    ensure!(result.contains(&hash[..9]) && result.contains(subject), "the last commit is not in {result}");
    ensure!(result.contains("> # Changelog"), "the changelog is not in {result}");
    let pieces = answer.artifacts("streaming_result").count();
    ensure!(pieces > 20, "the answer came in {pieces} pieces");
    Ok(())
}
