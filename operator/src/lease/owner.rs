//! Finds the owner of the lease: the `ServiceAccount` of the operator. An operator that is uninstalled together with
//! its rights cannot release the lease; its deletion with the account lets the next operator start at once.

use std::time::Duration;

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, UserInfo};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::PostParams;
use kube::{Api, Client};

const DEADLINE: Duration = Duration::from_secs(5);

/// The `ServiceAccount` of this process, if it belongs to this namespace; none for users and if the request fails.
pub async fn owner(client: &Client, namespace: &str) -> Option<OwnerReference> {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let (params, question) = (PostParams::default(), SelfSubjectReview::default());
    let asked = tokio::time::timeout(DEADLINE, api.create(&params, &question)).await;
    match asked {
        Ok(Ok(review)) => account(review.status?.user_info?, namespace),
        Ok(Err(error)) => {
            tracing::warn!(%error, "failed to find the ServiceAccount of this process: the lease remains after an uninstallation");
            None
        }
        Err(_) => {
            tracing::warn!(
                "failed to find the ServiceAccount of this process in time: the lease remains after an uninstallation"
            );
            None
        }
    }
}

fn account(user: UserInfo, namespace: &str) -> Option<OwnerReference> {
    let name = user.username.as_deref()?.strip_prefix("system:serviceaccount:")?;
    let name = name.strip_prefix(namespace)?.strip_prefix(':')?.to_owned();
    let (api_version, kind) = ("v1".to_owned(), "ServiceAccount".to_owned());
    Some(OwnerReference { api_version, kind, name, uid: user.uid?, ..OwnerReference::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_account_of_the_namespace_owns_the_lease() {
        let user = |name: &str, uid: Option<&str>| UserInfo {
            username: Some(name.to_owned()),
            uid: uid.map(str::to_owned),
            ..UserInfo::default()
        };
        let ours = account(user("system:serviceaccount:caipe-system:operator", Some("7")), "caipe-system");
        let ours = ours.map(|owner| (owner.kind, owner.name, owner.uid));
        assert_eq!(ours, Some(("ServiceAccount".to_owned(), "operator".to_owned(), "7".to_owned())));
        for (name, uid) in [
            ("kubernetes-admin", Some("7")),
            ("system:serviceaccount:caipe-system-2:operator", Some("7")),
            ("system:serviceaccount:caipe-system:operator", None),
        ] {
            assert_eq!(account(user(name, uid), "caipe-system"), None, "{name}");
        }
    }
}
