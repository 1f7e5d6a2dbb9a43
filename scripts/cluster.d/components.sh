# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other parts
# Starts, probes and stops the programs of the cluster.

# arguments COMPONENT: prints its arguments, one per line.
arguments() {
  local access=$state/access
  case $1 in
    etcd)
      printf '%s\n' --data-dir "$state/etcd" --log-level warn \
        --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
        --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
        --initial-cluster default=http://127.0.0.1:2380 --unsafe-no-fsync
      ;;
    kube-apiserver)
      printf '%s\n' --etcd-servers http://127.0.0.1:2379 --advertise-address "$node_address" --secure-port 6443 \
        --cert-dir "$state/apiserver" --service-cluster-ip-range "$service_range" \
        --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file "$access/accounts.pub" --service-account-signing-key-file "$access/accounts.key" \
        --token-auth-file "$access/tokens.csv" --authorization-mode Node,RBAC --allow-privileged \
        --enable-admission-plugins NodeRestriction,OwnerReferencesPermissionEnforcement \
        --audit-policy-file "$state/audit.yaml" --audit-log-path "$state/log/audit.log" \
        --kubelet-preferred-address-types InternalIP \
        --kubelet-client-certificate "$access/kubelet-client.crt" --kubelet-client-key "$access/kubelet-client.key"
      ;;
    kube-controller-manager)
      printf '%s\n' --kubeconfig "$access/kube-controller-manager.kubeconfig" --use-service-account-credentials \
        --service-account-private-key-file "$access/accounts.key" --root-ca-file "$state/apiserver/apiserver.crt" \
        --cert-dir "$state/controllers" --bind-address 127.0.0.1 --leader-elect=false \
        --horizontal-pod-autoscaler-sync-period 2s --cluster-cidr "$pod_range" --allocate-node-cidrs --service-cluster-ip-range "$service_range"
      ;;
    kube-scheduler)
      printf '%s\n' --kubeconfig "$access/kube-scheduler.kubeconfig" --cert-dir "$state/scheduler" \
        --bind-address 127.0.0.1 --leader-elect=false
      ;;
    containerd)
      printf '%s\n' --config "$state/containerd.toml"
      ;;
    kubelet)
      printf '%s\n' --config "$state/kubelet.yaml" --kubeconfig "$access/$node_name.kubeconfig" --root-dir "$state/kubelet" \
        --cert-dir "$state/kubelet-certificates" --hostname-override "$node_name" --node-ip "$node_address"
      ;;
    kube-proxy)
      # A network namespace cannot change these settings of connection tracking.
      printf '%s\n' --kubeconfig "$access/kube-proxy.kubeconfig" --hostname-override "$node_name" --cluster-cidr "$pod_range" \
        --proxy-mode iptables --conntrack-max-per-core 0 --conntrack-tcp-timeout-established 0s \
        --conntrack-tcp-timeout-close-wait 0s --oom-score-adj 0
      ;;
    coredns)
      printf '%s\n' -conf "$state/Corefile"
      ;;
  esac
}

# Writes the configuration files at each start, so that they match the release.
write_configuration() {
  local file text
  for file in audit.yaml containerd.toml kubelet.yaml Corefile resolv.conf network.conflist; do
    text=$(<"$parts/$file")
    text=${text//@STATE@/$state}
    text=${text//@NAME@/$name}
    text=${text//@CNI@/$(cni_folder)}
    text=${text//@NODE@/$node_address}
    text=${text//@DNS@/$dns_address}
    printf '%s\n' "${text//@PODS@/$pod_range}" >"$state/$file"
  done
  mkdir -p "$state/cni" "$state/log/pods"
  mv "$state/network.conflist" "$state/cni/10-caipe.conflist"
}

# pid COMPONENT: the process ids of a program of this node, not of other processes with the same name.
pid() {
  local links=() line
  mapfile -t links < <(own_processes)
  [ ${#links[@]} -gt 0 ] || return 0
  # Processes may end during this call. The file of a rebuilt program is marked as deleted.
  { stat --format %N "${links[@]/%//exe}" 2>/dev/null || true; } | while read -r line; do
    case $line in
      *" -> '$bin/$1'" | *" -> '$bin/$1 (deleted)'")
        line=${line#"'/proc/"}
        echo "${line%%/*}"
        ;;
    esac
  done
}

gone() { [ -z "$(pid "$1")" ]; }

launch() {
  local flags
  mapfile -t flags < <(arguments "$1")
  (
    join node
    # The shell ends at once, so the first process of the namespaces adopts the program.
    # shellcheck disable=SC2016 # for that shell
    inside setsid bash -c '"$@" &' bash "$bin/$1" "${flags[@]}" </dev/null >>"$state/log/$1.log" 2>&1 9>&-
  )
}

# answers PORT PATH: succeeds if the node answers with 200 on this port.
answers() {
  # shellcheck disable=SC2016 # for the shell inside
  nsenter "--net=/proc/$(space)/ns/net" -- timeout 2 bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1" || exit
    printf "GET %s HTTP/1.0\r\n\r\n" "$2" >&3 && read -r line <&3 && [[ $line == *" 200 "* ]]' bash "$@" 2>/dev/null
}

listens() {
  # shellcheck disable=SC2016 # for the shell inside
  nsenter "--net=/proc/$(space)/ns/net" -- bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$1"' bash "$1" 2>/dev/null
}

serves() {
  case $1 in
    etcd) answers 2379 /health ;;
    kube-apiserver) [ "$(kubectl get --raw /readyz 2>/dev/null)" = ok ] ;;
    kube-controller-manager) listens 10257 ;;
    kube-scheduler) listens 10259 ;;
    containerd) containers version >/dev/null 2>&1 ;;
    kubelet) answers 10248 /healthz ;;
    kube-proxy) answers 10256 /healthz ;;
    coredns) answers 8181 /ready ;;
  esac
}

alive_and_serves() {
  gone "$1" && return 1
  serves "$1"
}

component_start() {
  [ -n "$(space)" ] || die 'the cluster does not run; start it with: scripts/cluster up'
  local until=$((SECONDS + 90)) missed=0
  if gone "$1"; then launch "$1"; fi
  until alive_and_serves "$1"; do
    # A program that is missing for 40 probes in a row has ended.
    if gone "$1"; then missed=$((missed + 1)); else missed=0; fi
    if [ $missed -gt 40 ] || [ $SECONDS -ge $until ]; then
      die "$1 does not serve; the end of $state/log/$1.log:
$(tail -n 10 "$state/log/$1.log")"
    fi
    sleep 0.05
  done
}

component_stop() {
  gone "$1" && return
  # shellcheck disable=SC2046 # process ids
  kill $(pid "$1") 2>/dev/null || true
  await 30 "the end of $1" gone "$1" || component_kill "$1"
}

component_kill() {
  gone "$1" && return
  # shellcheck disable=SC2046 # process ids
  kill -KILL $(pid "$1") 2>/dev/null || true
  await 30 "the end of $1" gone "$1"
}

component_restart() {
  component_stop "$1"
  component_start "$1"
}

status() {
  local component whole=0 ids
  for component in $components; do
    ids=$(pid "$component" | paste -sd ' ')
    [ -n "$ids" ] || whole=1
    printf '%-24s %s\n' "$component" "${ids:-does not run}"
  done
  return $whole
}
