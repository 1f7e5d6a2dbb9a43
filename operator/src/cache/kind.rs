//! The kinds of managed objects.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, Pod as ApiPod, Secret, Service, ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::core::ApiResource;

use crate::metrics::labels::ObjectKind;

/// A kind of managed objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// The account of the pods.
    ServiceAccount,
    /// The generated keys.
    Secret,
    /// A rendered spec.
    ConfigMap,
    /// The volume of conversations.
    PersistentVolumeClaim,
    /// The endpoint of a supervisor, an agent or a tool server.
    Service,
    /// Allowed connections.
    NetworkPolicy,
    /// A supervisor, an agent or a tool server.
    Deployment,
    /// A pod of a Deployment.
    Pod,
}

impl Kind {
    /// The kinds of which only metadata is watched.
    pub const BY_METADATA: [Self; 6] = [
        Self::ServiceAccount,
        Self::Secret,
        Self::ConfigMap,
        Self::PersistentVolumeClaim,
        Self::Service,
        Self::NetworkPolicy,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ServiceAccount => "ServiceAccount",
            Self::Secret => "Secret",
            Self::ConfigMap => "ConfigMap",
            Self::PersistentVolumeClaim => "PersistentVolumeClaim",
            Self::Service => "Service",
            Self::NetworkPolicy => "NetworkPolicy",
            Self::Deployment => "Deployment",
            Self::Pod => "Pod",
        }
    }

    pub fn resource(self) -> ApiResource {
        match self {
            Self::ServiceAccount => ApiResource::erase::<ServiceAccount>(&()),
            Self::Secret => ApiResource::erase::<Secret>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::PersistentVolumeClaim => ApiResource::erase::<PersistentVolumeClaim>(&()),
            Self::Service => ApiResource::erase::<Service>(&()),
            Self::NetworkPolicy => ApiResource::erase::<NetworkPolicy>(&()),
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::Pod => ApiResource::erase::<ApiPod>(&()),
        }
    }
}

impl From<Kind> for ObjectKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::ServiceAccount => Self::ServiceAccount,
            Kind::Secret => Self::Secret,
            Kind::ConfigMap => Self::ConfigMap,
            Kind::PersistentVolumeClaim => Self::PersistentVolumeClaim,
            Kind::Service => Self::Service,
            Kind::NetworkPolicy => Self::NetworkPolicy,
            Kind::Deployment => Self::Deployment,
            Kind::Pod => Self::Pod,
        }
    }
}
