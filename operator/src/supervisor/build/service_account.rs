//! The `ServiceAccount` of the pods.

use k8s_openapi::api::core::v1::ServiceAccount;

use super::context::BuildContext;
use super::meta::Component;

/// A separate account, so that a cloud role can be bound to it. No token is mounted, because the pods do not use the
/// API server.
pub(super) fn service_account(cx: &BuildContext<'_>) -> ServiceAccount {
    ServiceAccount {
        metadata: cx.meta(cx.name, Component::Supervisor),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}
