//! A transport that forgives a server a late answer to the first question.
//!
//! The client library asks `server/discover`, waits ten seconds, and then begins the old way with `initialize`. A server that took longer to
//! start finds both questions. If it is of the old era, it refuses the first, and the library, which waits for the answer to the
//! second, gives up over the wrong id. If it is of the new era, it answers the first and refuses the second. Servers in
//! Python on a busy machine do take that long. So a late refusal is dropped here, and a late answer stands in for that to `initialize`,
//! whereupon the library goes on in the new era.

use std::future::{Future, ready};

use futures::future::Either;
use rmcp::RoleClient;
use rmcp::model::{
    ClientNotification, ClientRequest, DiscoverResult, Implementation, InitializeResult, JsonRpcMessage,
    ProtocolVersion, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport over which `server/discover` may be answered after `initialize` was asked.
#[derive(Debug)]
pub(super) struct Patient<T> {
    inner: T,
    first: Option<RequestId>,
    both: Option<Questions>,
    /// The first question was answered late, and the answer used for the second.
    settled: bool,
}

/// The two questions, once both are asked.
#[derive(Debug, Clone)]
struct Questions {
    discover: RequestId,
    initialize: RequestId,
}

impl<T> Patient<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, first: None, both: None, settled: false }
    }

    fn note_request(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(message) = message else {
            return;
        };
        match &message.request {
            ClientRequest::DiscoverRequest(_) => self.first = Some(message.id.clone()),
            ClientRequest::InitializeRequest(_) => {
                let initialize = message.id.clone();
                self.both = self.first.take().map(|discover| Questions { discover, initialize });
            }
            _ => {}
        }
    }

    /// Whether the library says that it has begun the old way, though it has not.
    fn is_obsolete(&self, message: &TxJsonRpcMessage<RoleClient>) -> bool {
        let JsonRpcMessage::Notification(message) = message else {
            return false;
        };
        self.settled && matches!(message.notification, ClientNotification::InitializedNotification(_))
    }

    /// What the library gets of a message.
    fn passed_on(&mut self, message: RxJsonRpcMessage<RoleClient>) -> Option<RxJsonRpcMessage<RoleClient>> {
        let Some(questions) = &self.both else {
            return Some(message);
        };
        match message {
            JsonRpcMessage::Response(response) if response.id == questions.discover => {
                let ServerResult::DiscoverResult(result) = response.result else {
                    return None;
                };
                let answer = in_place_of_initialize(result)?;
                let id = questions.initialize.clone();
                self.settled = true;
                Some(ServerJsonRpcMessage::response(ServerResult::InitializeResult(answer), id))
            }
            JsonRpcMessage::Error(error) if error.id.as_ref() == Some(&questions.discover) => None,
            JsonRpcMessage::Error(error)
                if self.settled && error.id.as_ref() == Some(&questions.initialize) =>
            {
                None
            }
            other => Some(other),
        }
    }
}

/// The answer to `initialize` that says the same; `None` where we do not speak the server's versions.
fn in_place_of_initialize(result: DiscoverResult) -> Option<InitializeResult> {
    if !result.supported_versions.contains(&ProtocolVersion::LATEST) {
        return None;
    }
    // Who it is does not matter to us, and an answer of this kind has to name somebody.
    let server = Implementation::new("unnamed", "0");
    let answer = InitializeResult::new(result.capabilities);
    Some(answer.with_protocol_version(ProtocolVersion::LATEST).with_server_info(server))
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Patient<T> {
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
            if let Some(message) = self.passed_on(message) {
                return Some(message);
            }
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
