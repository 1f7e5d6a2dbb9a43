//! Who is told to stop ends in order, however soon after the start.

use anyhow::Result;
use caipe_tests::scenario::Scenario;
use serde_json::json;

use super::takeover::{SERVE, another, says, stop};

#[tokio::test]
async fn who_has_just_said_where_it_listens_ends_in_order() -> Result<()> {
    let bridge = ["mcp-bridge", "--listen", "127.0.0.1:0", "--", "cat"];
    let setup = Scenario::new().turn(json!({}), json!({"text": "yes"})).setup()?;
    for arguments in [&SERVE[..], &bridge] {
        for _ in 0..5 {
            let (mut child, mut said) = another(&setup, arguments)?;
            says(&mut said, "listening").await?;
            assert_eq!(stop(&mut child).await?, Some(0), "{arguments:?}");
        }
    }
    Ok(())
}
