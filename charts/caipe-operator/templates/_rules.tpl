{{/*
The permissions in the watched namespaces, each with its reason. Tests compare them with the API calls of the operator.
*/}}
{{- define "caipe-operator.rules" -}}
# The resources. The operator changes only their status.
- apiGroups: [caipe.io]
  resources: [caipesupervisors]
  verbs: [list, watch]
# The status of the resources.
- apiGroups: [caipe.io]
  resources: [caipesupervisors/status]
  verbs: [patch]
# With the admission plugin OwnerReferencesPermissionEnforcement (OpenShift), an owner reference with blockOwnerDeletion
# requires this permission. The operator has no other use for it.
- apiGroups: [caipe.io]
  resources: [caipesupervisors/finalizers]
  verbs: [update]
# Supervisors, remote agents and tool servers. Get, here and below: to leave an object of another owner unchanged. Create
# and patch: for server-side apply. Delete: when an agent becomes in-process or a tool server is removed.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
# The Services of these pods. Delete: together with their Deployment.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
# Rendered specs. The operator also reads the ConfigMaps that resources refer to.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
# Create and get: the Secrets with the keys of a supervisor and its agents, which the operator creates once. List and watch: the operator
# requests only the metadata, to roll the pods that use a changed Secret; Kubernetes has no narrower permission for that. The
# operator never reads the content of your Secrets, and never changes or deletes a Secret.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create]
# The identity of the pods. The pods mount no token. Delete: together with the agent or tool server.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
# Volumes of conversations. The operator never deletes them; Kubernetes deletes those with `reclaimPolicy: Delete`.
# Patch: to let them grow.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch]
# The allowed traffic of the pods. Delete: together with the agent or tool server, or with `networkPolicy.mode: Disabled`.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
# How many pods of a supervisor with several replicas may be evicted at a time. Delete: when one replica is left.
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# The addresses of pods, for probes. Patch: an annotation, which makes the kubelet refresh the mounted spec at once.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
# Events for `kubectl describe`. Patch: a repeated event.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
