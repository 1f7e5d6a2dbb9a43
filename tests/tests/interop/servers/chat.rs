//! The terminal client with agents made with the official SDKs.

use anyhow::{Result, ensure};
use caipe_tests::sdk::{Program, Sdk};
use caipe_tests::supervisor::Setup;

async fn chats(sdk: Sdk) -> Result<()> {
    let Some((_program, url)) = Program::server(sdk, &[]).await? else { return Ok(()) };
    let output = Setup::new()?.run(&["chat", "--url", &url, "hello – 🚀"]).await?;
    let output_text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && output_text.contains("echo: hello – 🚀"), "{output_text:?} {errors}");
    let output = Setup::new()?.run(&["chat", "--url", &url, "fail"]).await?;
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(!output.status.success() && text.contains("It broke."), "{text:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_python_sdk_of_1_0() -> Result<()> {
    chats(Sdk::Python10).await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_python_sdk_of_0_3() -> Result<()> {
    chats(Sdk::Python03).await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_javascript_sdk_of_1_0() -> Result<()> {
    chats(Sdk::JavaScript10).await
}
