//! A tool server in a pod of its own that records each call, whatever happens to its callers.

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Live;
use super::pods::{container, restricted};
use super::scenario_run::{FIXTURES, MCP};
use super::service_address::ServiceAddress;
use crate::cluster::objects::{DEPLOYMENTS, condition};

/// The URL for agents in the same namespace.
pub const URL: &str = "http://notes:9000/mcp";
const NAME: &str = "notes";
const PORT: u16 = 9000;

/// The recorded calls.
#[derive(Debug)]
pub struct CallLog {
    address: ServiceAddress,
}

impl CallLog {
    /// Starts the server and waits until it is ready.
    pub async fn start(live: &Live) -> Result<Self> {
        let listen = format!("0.0.0.0:{PORT}");
        let mut server = container(NAME, FIXTURES);
        server["command"] = json!([MCP, "--listen", listen, "--mode", "noting", "--state", "/tmp/notes"]);
        server["readinessProbe"] = json!({"tcpSocket": {"port": PORT}, "periodSeconds": 1});
        live.serve(NAME, PORT, &restricted(&server))?;
        live.until("the notes are stored", DEPLOYMENTS, NAME, |seen| {
            condition(seen, "Available").starts_with("True")
        })
        .await?;
        Ok(Self { address: live.port_address(NAME, PORT).await? })
    }

    /// All recorded calls, one per line.
    pub async fn read(&self) -> Result<String> {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "notes"}});
        let http = reqwest::Client::builder().no_proxy().build()?;
        let url = format!("{}mcp", self.address.endpoint.url);
        let response = http.post(url).body(call.to_string()).send().await?.error_for_status()?;
        let answer: Value = serde_json::from_slice(&response.bytes().await?)?;
        let text = answer["result"]["content"][0]["text"].as_str();
        Ok(text.with_context(|| format!("no notes in {answer}"))?.to_owned())
    }
}
