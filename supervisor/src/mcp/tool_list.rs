//! The list of a server's tools.

use std::fmt;
use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};
use serde_json::Value;

use super::connection_error;
use super::error::ListError;

const MAX_PAGES: usize = 64;
/// The characters of a server's error that go into a message.
const REASON_CHARS: usize = 400;

#[derive(Debug, Default)]
pub(super) struct ToolList {
    pub(super) tools: Vec<Tool>,
    pub(super) malformed: Vec<MalformedTool>,
}

/// An entry of the list that is not a tool of the protocol.
#[derive(Debug)]
pub(super) struct MalformedTool {
    pub(super) name: Option<String>,
    /// Its position in its page, from one.
    pub(super) position: usize,
    pub(super) reason: String,
}

impl fmt::Display for MalformedTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "tool {name:?} is ignored: {}", self.reason),
            None => write!(f, "tool number {} is ignored: {}", self.position, self.reason),
        }
    }
}

/// All tools of the server, page by page. Bypasses the cache of the client library, which would hide that the server is gone.
pub(super) async fn list_tools(
    peer: &Peer<RoleClient>,
    limit: Option<Duration>,
) -> Result<ToolList, ListError> {
    let mut list = ToolList::default();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let (page, next) = match list_page(peer, cursor.clone(), limit).await {
            Ok(page) => page,
            Err(error) if lacks_tools(peer, &error) => return Ok(list),
            Err(ServiceError::TransportClosed) => return Err(ListError::Lost),
            Err(error) => {
                let reason = match &error {
                    ServiceError::TransportSend(error) => connection_error::transport(error),
                    _ => error.to_string(),
                };
                return Err(ListError::Refused(reason.chars().take(REASON_CHARS).collect()));
            }
        };
        list.tools.extend(page.tools);
        list.malformed.extend(page.malformed);
        if next.is_none() {
            return Ok(list);
        }
        if next == cursor {
            break;
        }
        cursor = next;
    }
    Err(ListError::Endless(MAX_PAGES))
}

async fn list_page(
    peer: &Peer<RoleClient>,
    cursor: Option<String>,
    limit: Option<Duration>,
) -> Result<(ToolList, Option<String>), ServiceError> {
    let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
    let options = limit.map(PeerRequestOptions::with_timeout).unwrap_or_default();
    let handle = peer.send_cancellable_request(ClientRequest::ListToolsRequest(request), options).await?;
    match handle.await_response().await? {
        ServerResult::ListToolsResult(page) => {
            Ok((ToolList { tools: page.tools, malformed: Vec::new() }, page.next_cursor))
        }
        // The library could not parse the page, because of one tool or more.
        ServerResult::CustomResult(page) => read_page(page.0).ok_or(ServiceError::UnexpectedResponse),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// The page without its malformed tools; `None` if it is not a page.
fn read_page(mut page: Value) -> Option<(ToolList, Option<String>)> {
    let Value::Array(entries) = page.get_mut("tools")?.take() else { return None };
    let mut list = ToolList::default();
    for (index, entry) in entries.into_iter().enumerate() {
        let name = entry.get("name").and_then(Value::as_str).map(str::to_owned);
        match serde_json::from_value(entry) {
            Ok(tool) => list.tools.push(tool),
            Err(error) => {
                let reason = error.to_string();
                list.malformed.push(MalformedTool { name, position: index + 1, reason });
            }
        }
    }
    Some((list, page.get("nextCursor").and_then(Value::as_str).map(ToOwned::to_owned)))
}

/// Whether the server rejects the request because it has no tools.
fn lacks_tools(peer: &Peer<RoleClient>, error: &ServiceError) -> bool {
    let refused = matches!(error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND);
    refused && peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none())
}

#[cfg(test)]
mod tests {
    use super::read_page;
    use serde_json::json;

    #[test]
    fn a_malformed_tool_costs_no_other_tool() {
        let schema = json!({"type": "object"});
        let page = json!({"nextCursor": "2", "tools": [
            {"name": "good", "inputSchema": schema},
            {"name": "bare"},
            {"inputSchema": schema},
            {"name": "odd", "inputSchema": "none"},
            7,
        ]});
        let (list, next) = read_page(page).unwrap();
        assert_eq!((list.tools.len(), next.as_deref()), (1, Some("2")));
        let reasons: Vec<String> = list.malformed.iter().map(ToString::to_string).collect();
        let reasons = reasons.join("\n");
        for expected in
            ["tool \"bare\" is ignored: missing field `inputSchema`", "number 3", "\"odd\"", "number 5"]
        {
            assert!(reasons.contains(expected), "{reasons}");
        }
        assert!(read_page(json!({"tools": {}})).is_none() && read_page(json!([])).is_none());
    }
}
