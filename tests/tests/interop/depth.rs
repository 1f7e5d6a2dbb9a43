//! An agent made with an official SDK, three levels below the supervisor: its question reaches the person, and the answer it.

use anyhow::{Result, ensure};
use caipe_tests::scenario::Scenario;
use caipe_tests::sdk::{Program, Sdk};
use caipe_tests::stream::{Answer, SseReader};
use caipe_tests::supervisor::unique;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_an_agent_made_with_an_sdk_comes_from_three_levels_down() -> Result<()> {
    for (sdk, arguments) in [(Sdk::Python10, &[][..]), (Sdk::Python10, &["--compat"]), (Sdk::Python03, &[])] {
        let Some((_program, url)) = Program::server(sdk, arguments).await? else { continue };
        let scenario = Scenario::new()
            .delegating("first", "second", "look")
            .delegating("second", "third", "ask")
            .asks("look", &["first"]);
        let supervisor = scenario.foreign("third", &url).setup()?.start().await?;
        let asked = supervisor.ask("look").await?;
        ensure!(asked.state() == "input-required", "{sdk:?}: {}\n{}", asked.outline(), supervisor.log());
        let shown = asked.texts("UserInputMetaData").concat();
        let question = "The agent first asks: The agent second asks: The agent third asks: Which one?";
        ensure!(shown.contains(question), "{sdk:?}: {shown}");
        let parts = json!([{"kind": "text", "text": "answer: blue"}]);
        let message = json!({"role": "user", "kind": "message", "messageId": unique("message"),
            "contextId": asked.context(), "taskId": asked.task(), "parts": parts});
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": {"message": message}});
        let reader = SseReader::new(supervisor.post(body.to_string()).await?)?;
        let answered = supervisor.checked_after(&asked, Answer::new(reader.rest().await?))?;
        ensure!(answered.state() == "completed", "{sdk:?}: {}", answered.outline());
        ensure!(answered.result()? == "echo: blue", "{sdk:?}: {}", answered.result()?);
    }
    Ok(())
}
