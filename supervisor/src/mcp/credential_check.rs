//! Checks the credentials of a tool server in the background, with a call that changes nothing.

use std::sync::Arc;
use std::time::Duration;

use caipe_crds::internal_status::{CredentialReason, CredentialReport};
use caipe_crds::rendered::CheckCall;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::call::ServerClient;
use super::catalog::ServerRegistry;
use super::credentials::result_of;

/// The limit of one check.
pub(super) const DEADLINE: Duration = Duration::from_secs(30);
/// The least time between two checks, also if the server joins again and again: a check must be no load, and lock no account.
const LEAST: Duration = Duration::from_mins(1);
/// The time between two checks of an API that was not reached, and may be back soon.
const RETRY: Duration = Duration::from_mins(5);
/// The time between two checks of a server that stays connected and whose API answered.
const INTERVAL: Duration = Duration::from_hours(1);

/// Checks the credentials of one server when it joins, and then rarely.
#[derive(Debug)]
pub(super) struct CredentialCheck {
    /// The position of the server.
    pub(super) server: usize,
    pub(super) call: CheckCall,
    pub(super) client: ServerClient,
    pub(super) registry: Arc<ServerRegistry>,
}

impl CredentialCheck {
    /// Returns once the server is gone for good.
    pub(super) async fn run(mut self) {
        while self.client.peer.wait_for(Option::is_some).await.is_ok() {
            let result = self.check().await;
            let reason = result.reason;
            self.report(result);
            sleep(LEAST).await;
            tokio::select! {
                joined = self.client.peer.changed() => if joined.is_err() { return },
                () = sleep(more_after(reason)) => {}
            }
        }
    }

    async fn check(&self) -> CredentialReport {
        let CheckCall { tool, arguments } = &self.call;
        let Some((route, status)) = self.registry.reading_tool(self.server, tool) else {
            let message = format!("the agent is not offered {tool}, which would show it");
            return CredentialReport { reason: CredentialReason::NotChecked, message };
        };
        let never = CancellationToken::new();
        result_of(tool, &self.client.call(&route, arguments.clone(), &status, never).await)
    }

    fn report(&self, result: CredentialReport) {
        let (tool, reason) = (&self.call.tool, result.reason.as_str());
        match result.reason {
            CredentialReason::Accepted | CredentialReason::NotChecked => {
                tracing::debug!(tool, reason, "credentials checked");
            }
            _ => tracing::warn!(tool, reason, "failed to check credentials: {}", result.message),
        }
        self.registry.update(self.server, |state| state.status.credentials = Some(result));
    }
}

/// The time until the next check, after the least one.
const fn more_after(reason: CredentialReason) -> Duration {
    match reason {
        CredentialReason::Unreachable | CredentialReason::Failed => RETRY.saturating_sub(LEAST),
        _ => INTERVAL.saturating_sub(LEAST),
    }
}
