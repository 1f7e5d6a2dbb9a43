# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Starts the node, from nothing or from a stopped cluster, and waits until it is ready.

marker=.caipe-cluster

up() {
  local began=$EPOCHREALTIME
  own_folder
  step 'namespaces' make_place
  step 'etcd' component_start etcd
  step 'containerd, pause image' start_containers
  step 'kube-apiserver' component_start kube-apiserver
  step 'controllers, kubelet, proxy, DNS' start_rest
  step 'volumes' make_volumes
  step 'node ready, names resolve' until_whole
  echo "cluster: ready after $(since "$began") s; its kubeconfig, for scripts/cluster run: $state/kubeconfig"
}

# Marks the folder, because `down` removes only marked folders.
own_folder() {
  case $state in /run/* | /var/run/* | /proc/* | /sys/*) die "the cluster cannot keep its state in $state; set CAIPE_CLUSTER" ;; esac
  if [ ! -e "$state/$marker" ]; then
    [ -z "$(ls -A "$state" 2>/dev/null)" ] || die "$state is not empty and not a cluster's; set CAIPE_CLUSTER to another folder"
    mkdir -p "$state"
    : >"$state/$marker"
  fi
}

make_place() {
  make_access
  ln -sfn access/admin.kubeconfig "$state/kubeconfig"
  make_groups
  write_configuration
  make_space
}

start_containers() {
  # The API server starts slowest, so launch it first.
  if gone kube-apiserver; then launch kube-apiserver; fi
  component_start containerd
  load_pause >/dev/null
}

# These programs start without each other.
start_rest() {
  local component rest='kube-controller-manager kube-scheduler kubelet kube-proxy coredns'
  apply_dns
  for component in $rest; do
    if gone "$component"; then
      [ "$component" != kubelet ] || kubelet_began=$(date -u +%FT%TZ)
      launch "$component"
    fi
  done
  for component in $rest; do component_start "$component"; done
}

apply_dns() {
  local text
  text=$(<"$parts/dns.yaml")
  text=${text//@NODE@/$node_address}
  kubectl apply --filename - <<<"${text//@DNS@/$dns_address}" >/dev/null
}

until_whole() {
  await 120 'the node to be ready' node_ready || die "the node is not ready: $(kubectl describe node "$node_name" | tail -n 30)"
  await 60 'the names of the cluster' names_resolve || die "names do not resolve; see $state/log/coredns.log"
  await 60 'the account that pods run as' kubectl get serviceaccount default >/dev/null 2>&1
}

kubelet_began=''

node_ready() {
  local seen
  seen=$(kubectl get node "$node_name" --output \
    'jsonpath={.status.conditions[?(@.type=="Ready")].status} {.spec.taints}' 2>/dev/null) && [ "$seen" = 'True ' ] || return
  # The condition of an existing node may be from before the restart. The kubelet renews its lease first.
  [ -z "$kubelet_began" ] || [[ ! $(kubectl get lease "$node_name" --namespace kube-node-lease --output \
    'jsonpath={.spec.renewTime}' 2>/dev/null) < $kubelet_began ]]
}

names_resolve() {
  inside getent ahostsv4 kubernetes.default.svc.cluster.local >/dev/null
}

# step WHAT COMMAND...: runs the command and prints its duration.
step() {
  local what=$1 began=$EPOCHREALTIME
  shift
  "$@"
  printf 'cluster: %-34s %s s\n' "$what" "$(since "$began")"
}

since() {
  local now=$EPOCHREALTIME
  local passed=$(((${now/[.,]/} - ${1/[.,]/}) / 100000))
  echo "$((passed / 10)).$((passed % 10))"
}
