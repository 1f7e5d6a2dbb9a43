{{/*
The rights in the namespaces that are looked after. Each with its reason; tests hold them against the calls that are made.
*/}}
{{- define "caipe-operator.rules" -}}
# The resources themselves. They are never changed, but for their status.
- apiGroups: [caipe.io]
  resources: [caipesupervisors]
  verbs: [list, watch]
# What is seen of them.
- apiGroups: [caipe.io]
  resources: [caipesupervisors/status]
  verbs: [patch]
# Where OwnerReferencesPermissionEnforcement is on (OpenShift), an owner that blocks deletion may be named only by who may
# do this; nothing else is done with it.
- apiGroups: [caipe.io]
  resources: [caipesupervisors/finalizers]
  verbs: [update]
# Supervisors, remote agents and tool servers. Get, here and below: what is not of ours by that name is left alone. Create
# and patch: server-side apply is both. Deleted when an agent moves back or a tool server goes.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
# Their addresses; deleted with them.
- apiGroups: [""]
  resources: [services]
  verbs: [get, list, watch, create, patch, delete]
# Rendered specs, and the texts that resources refer to, which are read.
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, list, watch, create, patch, delete]
# Create and get: the Secret with the keys that are made for a supervisor, once. List and watch: the metadata alone is asked
# for, so that a changed Secret rolls the pods that mount it; Kubernetes has no narrower right for that. What is in a Secret
# of yours is never read, and no Secret is ever changed or deleted.
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, watch, create]
# Who the pods are; no token is mounted in them.
- apiGroups: [""]
  resources: [serviceaccounts]
  verbs: [get, list, watch, create, patch]
# Volumes of conversations. Never deleted by the operator: only with their supervisor, by Kubernetes.
- apiGroups: [""]
  resources: [persistentvolumeclaims]
  verbs: [get, list, watch, create, patch]
# Who may talk to whom; deleted with the agent or tool server.
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, list, watch, create, patch, delete]
# Addresses of pods, to ask how they are. Patch: an annotation, which has the kubelet refresh the mounted spec at once.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch, patch]
# What happened, for `kubectl describe`; a repeated event is a patch.
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
{{- end }}
