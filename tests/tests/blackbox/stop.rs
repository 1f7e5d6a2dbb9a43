//! SIGTERM ends the server in order, however soon after the start.

use anyhow::Result;
use caipe_tests::scenario::Scenario;
use serde_json::json;

use super::takeover::{SERVE, another, says, stop};

#[tokio::test]
async fn a_server_that_just_started_ends_in_order() -> Result<()> {
    let bridge = ["mcp-bridge", "--listen", "127.0.0.1:0", "--", "cat"];
    let setup = Scenario::new().turn(json!({}), json!({"text": "yes"})).setup()?;
    for arguments in [&SERVE[..], &bridge] {
        for _ in 0..5 {
            let (mut child, mut log) = another(&setup, arguments)?;
            says(&mut log, "listening").await?;
            assert_eq!(stop(&mut child).await?, Some(0), "{arguments:?}");
        }
    }
    Ok(())
}
