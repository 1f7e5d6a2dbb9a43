//! The `ServiceAccount` of each component, so that a cloud role can be bound to one of them. No account mounts a
//! token by itself; the pod of a tool server that uses the API of the cluster asks for it.

use caipe_crds::resource::common;
use k8s_openapi::api::core::v1::ServiceAccount;

use super::context::BuildContext;
use super::meta::Component;

/// The declared account of a component, if there is one.
pub(super) type Declared<'a> = Option<&'a common::ServiceAccount>;

/// The account to create; none if the resource names an existing one.
pub(super) fn created(
    cx: &BuildContext<'_>,
    name: &str,
    component: Component<'_>,
    declared: Declared<'_>,
) -> Option<ServiceAccount> {
    let declared = declared.cloned().unwrap_or_default();
    let mut metadata = cx.meta(name, component);
    metadata.annotations = (!declared.annotations.is_empty()).then_some(declared.annotations);
    declared.name.is_none().then(|| ServiceAccount {
        metadata,
        automount_service_account_token: Some(false),
        ..ServiceAccount::default()
    })
}

/// The name of the account: the declared one, or that of the component.
pub(super) fn name<'a>(declared: Declared<'a>, component: &'a str) -> &'a str {
    declared.and_then(|account| account.name.as_deref()).unwrap_or(component)
}
