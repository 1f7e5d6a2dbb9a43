//! A transport that tolerates a late answer to `server/discover`.
//!
//! The client library asks `server/discover`, waits ten seconds, and then begins the old way with `initialize`. A server that took longer to
//! start finds both requests. If it is of the old era, it rejects the first, and the library, which waits for the answer to the
//! second, fails on the wrong id. If it is of the new era, it answers the first and rejects the second. Servers in
//! Python on a busy machine do take that long. So this transport drops a late error, and converts a late answer of a child into the answer to
//! `initialize`, after which the library continues in the new era. Over HTTP it drops a late answer as well: there the library's
//! transport has started a session of the old era by then and waits for its second message.

use std::future::{Future, ready};

use futures::future::Either;
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, DiscoverResult, Implementation, InitializeResult, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport over which `server/discover` may be answered after `initialize` was request.
#[derive(Debug)]
pub(super) struct TolerantTransport<T> {
    inner: T,
    first: Option<RequestId>,
    both: Option<ProbeIds>,
    /// The late answer to the first request was used for the second.
    settled: bool,
    /// Whether a late answer is used for `initialize`.
    converts: bool,
}

/// The ids of the two requests, once both are sent.
#[derive(Debug, Clone)]
struct ProbeIds {
    discover: RequestId,
    initialize: RequestId,
}

impl<T> TolerantTransport<T> {
    /// Over a pipe to a child.
    pub(super) fn with_child(inner: T) -> Self {
        Self { inner, first: None, both: None, settled: false, converts: true }
    }

    /// Over HTTP.
    pub(super) fn with_endpoint(inner: T) -> Self {
        Self { converts: false, ..Self::with_child(inner) }
    }

    fn note_request(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(message) = message else {
            return;
        };
        match &message.request {
            ClientRequest::DiscoverRequest(_) => self.first = Some(message.id.clone()),
            ClientRequest::InitializeRequest(_) => {
                let initialize = message.id.clone();
                self.both = self.first.take().map(|discover| ProbeIds { discover, initialize });
            }
            _ => {}
        }
    }

    /// Whether the message reports a start in the old era that did not happen.
    fn is_obsolete(&self, message: &TxJsonRpcMessage<RoleClient>) -> bool {
        let JsonRpcMessage::Notification(message) = message else {
            return false;
        };
        self.settled && matches!(message.notification, ClientNotification::InitializedNotification(_))
    }

    /// The message for the library.
    fn filter(&mut self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        let Some(ids) = &self.both else {
            return Some(message);
        };
        match message {
            JsonRpcMessage::Response(response) if response.id == ids.discover => {
                if !self.converts {
                    return None;
                }
                let ServerResult::DiscoverResult(result) = response.result else {
                    return None;
                };
                let answer = in_place_of_initialize(result)?;
                let id = ids.initialize.clone();
                self.settled = true;
                Some(ServerJsonRpcMessage::response(ServerResult::InitializeResult(answer), id))
            }
            JsonRpcMessage::Error(error) if error.id.as_ref() == Some(&ids.discover) => None,
            JsonRpcMessage::Error(error) if self.settled && error.id.as_ref() == Some(&ids.initialize) => {
                None
            }
            other => Some(other),
        }
    }
}

/// The equivalent answer to `initialize`; `None` if the server does not support the latest version.
fn in_place_of_initialize(result: DiscoverResult) -> Option<InitializeResult> {
    if !result.supported_versions.contains(&ProtocolVersion::LATEST) {
        return None;
    }
    // A discovery result must name a server; the name is not used.
    let server = Implementation::new("unnamed", "0");
    let answer = InitializeResult::new(result.capabilities);
    Some(answer.with_protocol_version(ProtocolVersion::LATEST).with_server_info(server))
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for TolerantTransport<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if self.is_obsolete(&item) {
            return Either::Left(ready(Ok(())));
        }
        self.note_request(&item);
        Either::Right(self.inner.send(item))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if let Some(message) = self.filter(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests {
    use super::TolerantTransport;
    use rmcp::RoleClient;
    use rmcp::model::ServerJsonRpcMessage;
    use rmcp::service::TxJsonRpcMessage;
    use rmcp::transport::Transport;
    use serde_json::{Value, json};
    use std::collections::VecDeque;

    /// Accepts every message and returns those that it was given.
    struct Messages(VecDeque<Value>);

    impl Transport<RoleClient> for Messages {
        type Error = std::io::Error;

        fn send(
            &mut self,
            _: TxJsonRpcMessage<RoleClient>,
        ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
            serde_json::from_value(self.0.pop_front()?).ok()
        }

        async fn close(&mut self) -> Result<(), Self::Error> {
            Ok(())
        }
    }

    /// The messages for the library after it has sent both requests.
    async fn read(wrap: impl Fn(Messages) -> TolerantTransport<Messages>, messages: &[Value]) -> Vec<Value> {
        let mut transport = wrap(Messages(messages.iter().cloned().collect()));
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "0"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "0"}});
        for request in [
            json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {"_meta": meta}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        ] {
            transport.send(serde_json::from_value(request).unwrap()).await.unwrap();
        }
        let mut read = Vec::new();
        while let Some(message) = transport.receive().await {
            read.push(serde_json::to_value(message).unwrap());
        }
        read
    }

    #[tokio::test]
    async fn a_late_answer_does_not_break_the_handshake() {
        let discovered = json!({"jsonrpc": "2.0", "id": 0, "result": {
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0,
            "cacheScope": "private",
        }});
        let refused = json!({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "what?"}});
        let begun = json!({"jsonrpc": "2.0", "id": 1, "result": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "y", "version": "1"},
        }});
        let no_longer = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "too old"}});
        let child = read(TolerantTransport::with_child, &[discovered.clone(), no_longer]).await;
        assert_eq!((child.len(), &child[0]["id"]), (1, &json!(1)), "{child:?}");
        assert_eq!(child[0]["result"]["protocolVersion"], "2026-07-28");
        for late in [&discovered, &refused] {
            let endpoint = read(TolerantTransport::with_endpoint, &[late.clone(), begun.clone()]).await;
            assert_eq!((endpoint.len(), &endpoint[0]["id"]), (1, &json!(1)), "{endpoint:?}");
            assert_eq!(endpoint[0]["result"]["protocolVersion"], "2025-11-25");
        }
    }
}
