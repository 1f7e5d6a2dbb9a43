//! A transport that forgives a server a late answer to the first question.
//!
//! The client library asks `server/discover`, waits ten seconds, and then begins the old way with `initialize`. A server that took longer to
//! start answers both questions; the library takes the first answer for that to `initialize`, finds the wrong id, and
//! gives up. Servers in Python on a busy machine do take that long. So the answer that nobody waits for any more is dropped here.

use std::future::Future;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport without answers to an abandoned `server/discover`.
#[derive(Debug)]
pub(super) struct Patient<T> {
    inner: T,
    probe: Option<RequestId>,
    abandoned: Option<RequestId>,
}

impl<T> Patient<T> {
    pub(super) fn new(inner: T) -> Self {
        Self { inner, probe: None, abandoned: None }
    }

    fn note_request(&mut self, message: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(message) = message else {
            return;
        };
        match &message.request {
            ClientRequest::DiscoverRequest(_) => self.probe = Some(message.id.clone()),
            ClientRequest::InitializeRequest(_) => self.abandoned = self.probe.take(),
            _ => {}
        }
    }

    fn is_abandoned(&self, message: &RxJsonRpcMessage<RoleClient>) -> bool {
        let answered = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        answered.is_some() && answered == self.abandoned.as_ref()
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Patient<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.note_request(&item);
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            if !self.is_abandoned(&message) {
                return Some(message);
            }
            tracing::debug!("a late answer to server/discover is dropped");
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.inner.close()
    }
}
