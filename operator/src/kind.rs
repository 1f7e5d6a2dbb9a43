//! The kinds of objects that the operator writes or watches.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::core::ApiResource;

use caipe_crds::CaipeSupervisor;

use crate::text_enum::text_enum;

text_enum! {
    /// A kind of objects.
    Kind {
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
        /// How many supervisor pods may be evicted at a time.
        PodDisruptionBudget,
        /// A supervisor, an agent or a tool server.
        Deployment,
        /// A pod of a Deployment.
        Pod,
        /// The resource itself.
        CaipeSupervisor,
        /// An event about a resource.
        Event,
        /// The lease of the leader.
        Lease,
    }
}

impl Kind {
    /// The kinds of managed objects of which only metadata is watched.
    pub const BY_METADATA: [Self; 7] = [
        Self::ServiceAccount,
        Self::Secret,
        Self::ConfigMap,
        Self::PersistentVolumeClaim,
        Self::Service,
        Self::NetworkPolicy,
        Self::PodDisruptionBudget,
    ];

    pub fn resource(self) -> ApiResource {
        match self {
            Self::ServiceAccount => ApiResource::erase::<ServiceAccount>(&()),
            Self::Secret => ApiResource::erase::<Secret>(&()),
            Self::ConfigMap => ApiResource::erase::<ConfigMap>(&()),
            Self::PersistentVolumeClaim => ApiResource::erase::<PersistentVolumeClaim>(&()),
            Self::Service => ApiResource::erase::<Service>(&()),
            Self::NetworkPolicy => ApiResource::erase::<NetworkPolicy>(&()),
            Self::PodDisruptionBudget => ApiResource::erase::<PodDisruptionBudget>(&()),
            Self::Deployment => ApiResource::erase::<Deployment>(&()),
            Self::Pod => ApiResource::erase::<Pod>(&()),
            Self::CaipeSupervisor => ApiResource::erase::<CaipeSupervisor>(&()),
            Self::Event => ApiResource::erase::<Event>(&()),
            Self::Lease => ApiResource::erase::<Lease>(&()),
        }
    }
}
