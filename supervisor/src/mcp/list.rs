//! The list of a server's tools.

use std::time::Duration;

use rmcp::model::{ClientRequest, ErrorCode, ListToolsRequest, PaginatedRequestParams, ServerResult, Tool};
use rmcp::service::{Peer, PeerRequestOptions, RoleClient, ServiceError};

use super::error::ListError;

/// The most pages of a list.
const MAX_PAGES: usize = 64;
/// The most characters of a server's refusal to list its tools that go into a message.
const REASON_CHARS: usize = 400;

/// All tools of the server, page by page. Asks the server itself: the library's cache would hide that it is gone.
pub(super) async fn list_tools(
    peer: &Peer<RoleClient>,
    limit: Option<Duration>,
) -> Result<Vec<Tool>, ListError> {
    let mut tools = Vec::new();
    let mut cursor: Option<String> = None;
    for _ in 0..MAX_PAGES {
        let (page, next) = match list_page(peer, cursor.clone(), limit).await {
            Ok(page) => page,
            Err(error) if lacks_tools(peer, &error) => return Ok(tools),
            Err(ServiceError::TransportClosed) => return Err(ListError::Lost),
            Err(error) => {
                return Err(ListError::Refused(error.to_string().chars().take(REASON_CHARS).collect()));
            }
        };
        tools.extend(page);
        if next.is_none() {
            return Ok(tools);
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
) -> Result<(Vec<Tool>, Option<String>), ServiceError> {
    let request = ListToolsRequest::with_param(PaginatedRequestParams::default().with_cursor(cursor));
    let options = limit.map(PeerRequestOptions::with_timeout).unwrap_or_default();
    let handle = peer.send_cancellable_request(ClientRequest::ListToolsRequest(request), options).await?;
    match handle.await_response().await? {
        ServerResult::ListToolsResult(page) => Ok((page.tools, page.next_cursor)),
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// A server that never said it had tools need not answer the question for them.
fn lacks_tools(peer: &Peer<RoleClient>, error: &ServiceError) -> bool {
    let refused = matches!(error, ServiceError::McpError(error) if error.code == ErrorCode::METHOD_NOT_FOUND);
    refused && peer.peer_info().is_some_and(|info| info.capabilities.tools.is_none())
}
