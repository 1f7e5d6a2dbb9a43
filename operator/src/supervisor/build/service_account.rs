//! Who the pods are.

use k8s_openapi::api::core::v1::ServiceAccount;

use super::context::BuildContext;
use super::meta::Component;

/// An account of its own, so that a role in the cloud can be tied to it. No token is mounted: nothing here asks the API
/// server.
pub(super) fn service_account(cx: &BuildContext<'_>) -> ServiceAccount {
    ServiceAccount {
        metadata: cx.meta(cx.name, Component::Supervisor),
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    }
}
